"""`promtool tsdb dump`, and TSDB directories through promtool."""

import shutil
from pathlib import Path

import pytest

import parsers
from forensics.errors import InputError
from parsers.prometheus.tsdb_dump import convert, tsdbs_below

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed"
)


def test_a_recorded_dump(read, rows, restart):
    parsed = read((restart / "tsdb_dump.txt").read_bytes())
    coverage = parsed.coverage
    assert coverage.format == "promtool-tsdb-dump"
    # 430 lines are NaN: the marks that the series of the stopped server ended.
    assert (coverage.lines, coverage.matched, coverage.ignored) == (30305, 29875, 430)
    assert (parsed.series.height, coverage.samples, coverage.damaged) == (435, 29875, 0)
    first = rows(parsed)[0]
    assert first == {
        "stamp": 1795973251.106,
        "value": 22.0,
        "instance": "127.0.0.1:8000",
        "engine": None,
        "metric": "http_request_duration_highr_seconds_bucket",
        "labels": {"job": "vllm"},
        "edge": float("inf"),
    }


def test_native_histograms_of_a_dump(read, rows):
    name = '{__name__="vllm:time_to_first_token_seconds", engine="0"}'
    text = (
        f"{name} {{count:3, sum:2.5, (0.25,0.5]:1, (1,2]:2}} 10000\n"
        f"{name} {{count:4, sum:3.5, (0.25,0.5]:2, (1,2]:2}} 20000\n"
        '{__name__="up"} 1 20000\n'
    )
    parsed = read(text)
    assert parsed.coverage.matched == 3
    found = [(r["metric"], r["edge"], r["stamp"], r["value"]) for r in rows(parsed)]
    assert [f for f in found if f[1] == 0.5] == [
        ("vllm:time_to_first_token_seconds_bucket", 0.5, 10.0, 1.0),
        ("vllm:time_to_first_token_seconds_bucket", 0.5, 20.0, 2.0),
    ]
    assert ("vllm:time_to_first_token_seconds_sum", None, 20.0, 3.5) in found


def test_directories_are_recognised(restart, tmp_path):
    snapshot = restart / "tsdb_snapshot"
    block = next(snapshot.iterdir())
    assert tsdbs_below(tmp_path) == []
    assert [tsdb.path for tsdb in tsdbs_below(restart)] == [snapshot]
    assert [tsdb.path for tsdb in tsdbs_below(block)] == [block]


@needs_promtool
@pytest.mark.prometheus
def test_a_snapshot_and_its_block_give_the_recorded_dump(restart):
    expected = (restart / "tsdb_dump.txt").read_bytes()
    snapshot = restart / "tsdb_snapshot"
    before = sorted(snapshot.rglob("*"))
    for path in (snapshot, next(snapshot.iterdir())):
        with convert(path) as dump:
            assert dump.read() == expected
    assert sorted(snapshot.rglob("*")) == before


@needs_promtool
@pytest.mark.prometheus
def test_reading_a_folder_with_a_snapshot_in_it(restart, tmp_path):
    shutil.copytree(restart / "tsdb_snapshot", tmp_path / "prometheus" / "snapshot")
    shutil.copy(restart / "query_range" / "vllm_num_requests_running.json", tmp_path)
    evidence = parsers.read([str(tmp_path)], parsers.ReadOptions(known_series_only=False))
    found = {
        Path(evidence.sources[one.source].path).name: (one.format, one.samples)
        for one in evidence.coverage
    }
    assert found["snapshot"] == ("promtool-tsdb-dump", 29875)
    assert found["vllm_num_requests_running.json"][0] == "prometheus-api"
    assert len(found) == 2


@needs_promtool
@pytest.mark.prometheus
def test_a_broken_block_is_refused_with_promtools_reason(restart, tmp_path):
    place = tmp_path / "broken"
    shutil.copytree(restart / "tsdb_snapshot", place)
    index = next(place.glob("*/index"))
    index.unlink()
    index.write_bytes(b"no index")
    with pytest.raises(InputError, match="promtool could not read this TSDB"):
        convert(place)


def test_without_promtool_the_message_says_how_to_convert(restart, monkeypatch):
    monkeypatch.setenv("PATH", "")
    snapshot = restart / "tsdb_snapshot"
    with pytest.raises(InputError) as caught:
        convert(snapshot)
    assert f"promtool tsdb dump {snapshot} > dump.txt" in str(caught.value)
