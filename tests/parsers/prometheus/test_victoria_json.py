"""JSON lines of VictoriaMetrics' `/api/v1/export`."""

import json
import math

LABELS = {"__name__": "vllm:num_requests_running", "engine": "0", "instance": "a:8000"}


def line(values, stamps, **labels):
    item = {"metric": {**LABELS, **labels}, "values": values, "timestamps": stamps}
    return json.dumps(item, separators=(",", ":")) + "\n"


def test_lines_of_one_series_join(read, rows):
    text = line([1, 2.5], [1795973250106, 1795973265106]) + line([3], [1795973280106])
    parsed = read(text)
    assert parsed.coverage.format == "victoriametrics-json"
    assert parsed.series.height == 1
    assert [(r["stamp"], r["value"]) for r in rows(parsed)] == [
        (1795973250.106, 1.0),
        (1795973265.106, 2.5),
        (1795973280.106, 3.0),
    ]


def test_nulls_and_infinities(read, rows):
    text = line([None, "Infinity", "-Infinity", 4], [1000, 2000, 3000, 4000])
    values = [row["value"] for row in rows(read(text))]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 4.0]


def test_damage_is_counted_and_the_rest_kept(read, rows):
    text = (
        line([1], [1000])
        + line([1, 2], [1000])  # not as many
        + line(["x"], [1000])  # not a number
        + line([True], [1000]).replace('"timestamps"', '"times"')
        + line([2], [2000])[:40]
        + "\n\n"
        + line([3], [3000])
    )
    parsed = read(text)
    assert [row["value"] for row in rows(parsed)] == [1.0, 3.0]
    coverage = parsed.coverage
    assert (coverage.lines, coverage.matched, coverage.ignored, coverage.damaged) == (7, 2, 1, 4)
    assert text[parsed.damages[0].offset :].startswith(line([1, 2], [1000]))


def test_the_api_answer_of_the_same_series_is_not_taken_for_it(recognise):
    item = {"metric": LABELS, "values": [[1795973250, "1"]]}
    assert recognise(json.dumps(item)) == "prometheus-api"
    assert recognise(line([1], [1000])) == "victoriametrics-json"
