"""Grafana's data frames as JSON."""

import json
import math

LABELS = {"__name__": "vllm:num_requests_running", "engine": "0", "instance": "a:8000"}
STAMPS = [1704067200000, 1704067215000, 1704067230000]


def frame(values, labels=None, entities=None, name="Value", meta=None):
    fields = [
        {"name": "Time", "type": "time", "typeInfo": {"frame": "time.Time"}},
        {"name": name, "type": "number", "labels": labels, "config": {}},
    ]
    data = {"values": [STAMPS[: len(values)], values]}
    if entities is not None:
        data["entities"] = [None, entities]
    return {"schema": {"refId": "A", "meta": meta or {}, "fields": fields}, "data": data}


def found(rows, parsed):
    return [(r["instance"], r["engine"], r["metric"], r["stamp"], r["value"]) for r in rows(parsed)]


def test_data_frames_with_labels(read, rows):
    text = json.dumps([frame([1, None, 3], LABELS), frame([5], {**LABELS, "engine": "1"})])
    parsed = read(text)
    assert parsed.coverage.format == "grafana-json"
    assert found(rows, parsed) == [
        ("a:8000", "0", "vllm:num_requests_running", 1704067200.0, 1.0),
        ("a:8000", "0", "vllm:num_requests_running", 1704067230.0, 3.0),
        ("a:8000", "1", "vllm:num_requests_running", 1704067200.0, 5.0),
    ]


def test_query_answer_with_infinities(read, rows):
    answer = {
        "results": {"A": {"frames": [frame([None, None, 2], LABELS, {"NaN": [0], "Inf": [1]})]}}
    }
    values = [value for *_, value in found(rows, read(json.dumps(answer, indent=2)))]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, 2.0]


def test_panel_data(read, rows):
    panel = {
        "state": "Done",
        "series": [
            {
                "refId": "A",
                "fields": [
                    {"name": "Time", "type": "time", "values": STAMPS},
                    {"name": "x", "type": "number", "labels": LABELS, "values": [1, 2, 3]},
                ],
            },
            {
                "refId": "B",
                "fields": [
                    {"name": "Time", "type": "time", "values": {"buffer": STAMPS[:1]}},
                    {
                        "name": "Value",
                        "type": "number",
                        "values": {"buffer": [9]},
                        "config": {"displayNameFromDS": 'vllm:num_requests_waiting{engine="2"}'},
                    },
                ],
            },
        ],
    }
    result = found(rows, read(json.dumps(panel)))
    assert [(metric, engine, value) for _, engine, metric, _, value in result] == [
        ("vllm:num_requests_running", "0", 1.0),
        ("vllm:num_requests_running", "0", 2.0),
        ("vllm:num_requests_running", "0", 3.0),
        ("vllm:num_requests_waiting", "2", 9.0),
    ]


def test_the_query_names_a_series_that_its_labels_do_not(read, rows):
    named = frame(
        [1], {"engine": "0"}, meta={"executedQueryString": 'Expr: up{job="a"}\nStep: 15s'}
    )
    nameless = frame([2], {}, meta={"executedQueryString": "Expr: rate(up[1m])\nStep: 15s"})
    parsed = read(json.dumps([named, nameless]))
    assert [(metric, value) for _, _, metric, _, value in found(rows, parsed)] == [
        ("up", 1.0),
        ("", 2.0),
    ]


def test_table_format_with_labels_in_fields(read, rows):
    table = {
        "schema": {
            "fields": [
                {"name": "Time", "type": "time"},
                {"name": "__name__", "type": "string"},
                {"name": "engine", "type": "string"},
                {"name": "Value", "type": "number"},
            ]
        },
        "data": {"values": [STAMPS[:2], ["up", "vllm:num_requests_running"], ["0", "1"], [1, 4]]},
    }
    assert [(m, e, v) for _, e, m, _, v in found(rows, read(json.dumps([table])))] == [
        ("up", "0", 1.0),
        ("vllm:num_requests_running", "1", 4.0),
    ]


def test_a_frame_without_time_is_damage(read):
    broken = {"schema": {"fields": [{"name": "x", "type": "number"}]}, "data": {"values": [[1]]}}
    parsed = read(json.dumps([frame([1], LABELS), broken]))
    assert (parsed.coverage.samples, parsed.coverage.damaged) == (1, 1)
