"""Stamps in other units and values that cannot be: read, counted, and never a crash."""

import json

import pytest

START = 1776303540.0


def answer(points, metric="vllm:num_requests_running"):
    series = {"metric": {"__name__": metric, "engine": "0"}, "values": points}
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [series]}},
        separators=(",", ":"),
    )


@pytest.mark.parametrize(
    ("scale", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")]
)
def test_stamps_of_other_units_are_the_same_times(read, rows, scale, unit):
    parsed = read(answer([[int((START + at) * scale), str(at)] for at in (0, 15, 30)]))
    assert [row["stamp"] for row in rows(parsed)] == pytest.approx([START, START + 15, START + 30])
    assert parsed.coverage.note == f"time stamps in {unit} were read as such"
    assert parsed.coverage.damaged == 0


def test_stamps_in_seconds_are_left_alone(read, rows):
    parsed = read(answer([[0, "1"], [START, "2"], [99_999_999_999, "3"]]))
    assert [row["stamp"] for row in rows(parsed)] == [0.0, START, 99_999_999_999.0]
    assert parsed.coverage.note is None


def test_a_stamp_that_is_no_time_costs_only_its_point(read, rows):
    parsed = read(answer([[-5, "1"], [START, "2"], [1e308, "3"]]))
    assert [row["value"] for row in rows(parsed)] == [2.0]
    assert parsed.coverage.damaged == 2
    assert [damage.reason for damage in parsed.damages] == ["a time stamp that is no time"] * 2


def test_values_that_no_series_of_vllm_has_are_noted_and_left_as_exposed(read, rows):
    values = ["1", "-1", "+Inf", "-Inf", "1e308", "NaN", "2"]
    parsed = read(answer([[START + at, value] for at, value in enumerate(values)]))
    assert len(rows(parsed)) == 7
    assert parsed.coverage.note == (
        "4 values are negative, infinite or above 1e+18, which no vLLM series can have "
        "(first: vllm:num_requests_running); they were not used"
    )


@pytest.mark.parametrize("metric", ["vllm:gpu_prefix_cache_hit_rate", "DCGM_FI_DEV_GPU_TEMP"])
def test_negative_values_that_mean_something_are_not_noted(read, metric):
    assert read(answer([[START, "-1"]], metric)).coverage.note is None
