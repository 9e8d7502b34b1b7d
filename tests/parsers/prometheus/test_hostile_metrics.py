"""Any bytes at all: no exception, and the counts add up."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from parsers.prometheus import FORMATS

NAMES = [one.name for one in FORMATS]
LINED = ("prometheus-text", "promtool-tsdb-dump", "victoriametrics-json")

TEXTS = rb"""
    {"metric":{ | "metric" | "__name__":"up" | },"values":[[ | 1,"2" | ],[ | ]]}, | "timestamps":[1]
    | "fields":[{"type":"time" | "schema":{ | { | } | [ | ] | " | \ | , | : | - | +Inf | 1e999
    | # HELP x y | # EOF | vllm:num_requests_running{le="1"} 5
    | up 1 1795973250106 | up NaN | {__name__="up"} 1 1000
    | {count:1, sum:2} 5 | Time,Value | 1795973250,1 | 2026-11-29T17:27:30Z | 9999-99-99T99:99:99
    | "Time","x{a=""b""}" | sep=;
"""
WORDS = [text.strip() for text in TEXTS.split(b" | ")]
BREAKS = [b" ", b"\n", b"\r\n", b"\n\n", b"\0", b"\xff\xfe"]
BITS = st.sampled_from([*WORDS, *BREAKS])
mixtures = st.lists(BITS | st.binary(max_size=6), max_size=30).map(b"".join)

quick = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(data=mixtures)
@example(data=b"")
@example(data=b"\n" * 50)
@example(data=b'{"metric":{"__name__":"up"},"values":')
@example(data=b'{"metric":{"__name__":"up"},"histograms":[[1,{"count":"x","sum":1}],[{}],7]}')
@example(data=b'{"metric":{"__name__":"up"},"histograms":[[1,{"count":1,"sum":1,"buckets":[7]}]]}')
def test_no_format_fails_on_any_content(read, name, data):
    parsed = read(data, format=name)
    coverage = parsed.coverage
    assert coverage.format == name
    assert coverage.samples == parsed.samples.height
    assert set(parsed.samples["series"]) <= set(parsed.series["series"])
    assert len(parsed.damages) == coverage.damaged
    assert all(0 <= damage.offset <= len(data) for damage in parsed.damages)
    assert coverage.bytes == len(data)
    if name in LINED:
        counted = coverage.matched + coverage.ignored + coverage.unknown + coverage.damaged
        assert counted == coverage.lines


@quick
@given(data=mixtures)
def test_recognition_never_fails(recognise, data):
    assert recognise(data) in {None, *NAMES}


def test_label_text_is_data_only(read, rows):
    label = '<script>alert(1)</script>"}],"metric":{"__name__":"evil"},"values":[[1,"2"]]'
    item = {"metric": {"__name__": "up", "x": label}, "values": [[1, "1"]]}
    found = rows(read(json.dumps(item)))
    assert [(row["metric"], row["labels"]["x"], row["value"]) for row in found] == [
        ("up", label, 1.0)
    ]


def test_damages_are_bounded_but_counted(read):
    parsed = read("up 1\n" + "vllm:num_requests_running{\n" * 5000, format="prometheus-text")
    assert parsed.coverage.damaged == 5000
    assert len(parsed.damages) == 1000
