"""CSV tables: Grafana's wide and long layout, VictoriaMetrics' rows without a header."""

import math

import pytest

RUNNING = 'vllm:num_requests_running{engine=""0"", instance=""a:8000"", job=""vllm""}'
WAITING = '{__name__=""vllm:num_requests_waiting"", engine=""1""}'


def found(rows, parsed):
    return [(r["instance"], r["engine"], r["metric"], r["stamp"], r["value"]) for r in rows(parsed)]


@pytest.mark.parametrize("first", ["", "sep=,\n", "\ufeff", "\ufeffsep=,\r\n"])
def test_wide_layout(read, rows, first):
    text = (
        f'{first}"Time","{RUNNING}","{WAITING}"\n1704067200000,3,1\n1704067215000,4.5,\n'
        '1704067230000,NaN,"1,234"\n'
    )
    parsed = read(text)
    assert parsed.coverage.format == "metrics-csv"
    result = found(rows, parsed)
    nan = result.pop(3)
    assert result == [
        ("a:8000", "0", "vllm:num_requests_running", 1704067200.0, 3.0),
        (None, "1", "vllm:num_requests_waiting", 1704067200.0, 1.0),
        ("a:8000", "0", "vllm:num_requests_running", 1704067215.0, 4.5),
        (None, "1", "vllm:num_requests_waiting", 1704067230.0, 1234.0),
    ]
    assert math.isnan(nan[4])
    assert parsed.coverage.damaged == 0
    assert set(parsed.series["clock"]) == {"utc"}


def test_wide_layout_with_formatted_cells_is_on_a_clock_without_zone(read, rows):
    text = (
        f'"Time";"{RUNNING}"\n2026-11-29 17:27:30;1.5 K\n2026-11-29 17:27:45;85%\n'
        "2026-11-29 17:28:00;250 ms\n"
    )
    parsed = read(text)
    assert [value for *_, value in found(rows, parsed)] == [1500.0, 0.85, 0.25]
    assert set(parsed.series["clock"]) == {"local"}
    assert "without a zone" in parsed.coverage.note


def test_long_layout_with_labels_in_columns(read, rows):
    text = (
        "Time,__name__,engine,instance,job,le,model_name,Value #A\n"
        "2026-11-29T17:27:30.000Z,vllm:num_requests_running,0,a:8000,vllm,,m,3\n"
        "2026-11-29T17:27:30.000Z,vllm:e2e_request_latency_seconds_bucket,1,a:8000,vllm,0.3,m,7\n"
    )
    parsed = read(text)
    assert found(rows, parsed) == [
        ("a:8000", "0", "vllm:num_requests_running", 1795973250.0, 3.0),
        ("a:8000", "1", "vllm:e2e_request_latency_seconds_bucket", 1795973250.0, 7.0),
    ]
    assert rows(parsed)[1]["edge"] == 0.3
    assert rows(parsed)[0]["labels"] == {"job": "vllm", "model_name": "m"}
    assert set(parsed.series["clock"]) == {"utc"}


def test_long_layout_with_series_as_rows(read, rows):
    text = f'"Series";"Time";"Value"\n"{RUNNING}";2026-11-29T18:27:30+01:00;3\n'
    assert found(rows, read(text)) == [
        ("a:8000", "0", "vllm:num_requests_running", 1795973250.0, 3.0)
    ]


@pytest.mark.parametrize(
    ("row", "labels"),
    [
        ("{name},{value},{s}", {}),
        ("{name},0,a:8000,vllm,{value},{ms}", {"column_4": "vllm"}),
        ("{ns},{value},a:8000,0,{name}", {}),
        ("{name},a:8000,0,{iso},{value}", {}),
    ],
)
def test_rows_without_a_header(read, rows, row, labels):
    stamps = [1795973250, 1795973265, 1795973280]
    text = "".join(
        row.format(
            name="vllm:num_requests_running",
            value=2.5 + index,
            s=stamp,
            ms=stamp * 1000,
            ns=stamp * 10**9,
            iso=f"2026-11-29T17:27:{30 + 15 * index:02d}Z" if index < 2 else "2026-11-29T17:28:00Z",
        )
        + "\n"
        for index, stamp in enumerate(stamps)
    )
    parsed = read(text)
    assert [(r["stamp"], r["value"], r["labels"]) for r in rows(parsed)] == [
        (float(stamp), 2.5 + index, labels) for index, stamp in enumerate(stamps)
    ]
    if "a:8000" in row:
        assert parsed.series["instance"].to_list() == ["a:8000"]
        assert parsed.series["engine"].to_list() == ["0"]
    assert "no header" in parsed.coverage.note


def test_damage_is_counted_and_the_rest_kept(read, rows):
    text = (
        f'"Time","{RUNNING}"\n1704067200000,3\n1704067215000,three\nyesterday,4\n'
        "1704067230000\n1704067245000,5\n"
    )
    parsed = read(text)
    assert [value for *_, value in found(rows, parsed)] == [3.0, 5.0]
    assert (parsed.coverage.matched, parsed.coverage.damaged) == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,3\n",
        "Time,Value\nnever,1\n",
        "INFO 11-29 17:27:30 [loggers.py:236] Engine 000: Avg prompt throughput: 5, x, y\n",
        "name,age\nbob,1795973250\n",
        "t_submit,t_end\n1795973250,1795973251\n",
    ],
)
def test_other_tables_are_left_alone(recognise, text):
    assert recognise(text) is None
