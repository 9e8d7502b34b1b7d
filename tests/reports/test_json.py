import copy
import json as stdlib_json
import math
from dataclasses import replace

import jsonschema
import pytest

from forensics.analysis import Where
from forensics.ceiling.records import Limit, Sweep, SweepRow
from forensics.errors import InputError
from forensics.reports import json, schema
from forensics.reports.instants import iso, seconds


def tree(analysis):
    return stdlib_json.loads(json.render(analysis))


def test_stored_schema_is_the_one_the_records_give():
    """Wording follows the docstrings at the next rewrite; the shape may never be behind."""
    stored = stdlib_json.loads(schema.STORED.read_text(encoding="utf-8"))
    made = stdlib_json.loads(schema.text())
    assert shape(stored) == shape(made), "run: python -m forensics.reports.schema"


def shape(tree):
    if isinstance(tree, dict):
        named = {"properties", "$defs"}
        return {
            key: {name: shape(part) for name, part in value.items()}
            if key in named
            else shape(value)
            for key, value in tree.items()
            if key != "description" or isinstance(value, dict)
        }
    return [shape(item) for item in tree] if isinstance(tree, list) else tree


def test_document_follows_the_schema(analysis, healthy):
    validator = jsonschema.Draft202012Validator(schema.schema())
    validator.check_schema(schema.schema())
    for one in (analysis, healthy):
        assert [error.message for error in validator.iter_errors(tree(one))] == []


def test_schema_refuses_a_missing_and_an_unknown_key(analysis):
    validator = jsonschema.Draft202012Validator(schema.schema())
    for spoil in (lambda d: d["verdict"].pop("cause"), lambda d: d["verdict"].update(mood="bad")):
        spoiled = copy.deepcopy(tree(analysis))
        spoil(spoiled)
        assert not validator.is_valid(spoiled)


def test_the_keys_of_the_contract_are_there(analysis):
    doc = tree(analysis)
    assert doc["schema_version"] == "1.0"
    assert doc["tool"] == {"name": "forensics", "version": "0.1.0"}
    assert doc["window"] == {"start": "2026-11-29T17:31:45Z", "end": "2026-11-29T17:34:15Z"}
    assert doc["verdict"]["onset"] == {
        "start": "2026-11-29T17:32:49Z",
        "end": "2026-11-29T17:33:05Z",
    }
    assert doc["verdict"]["contributing"] == [{"cause": "eviction-pressure", "share": 0.24}]
    assert doc["verdict"]["summary"] == (
        "The KV pool of engine 0 ran out: hit rate fell from 79.7 % to 52.0 % while 574 preemptions"
        " were counted."
    )
    assert doc["verdict"]["summary_message"]["key"] == "test.summary"
    usage = doc["findings"][0]["exhibits"][1]
    assert usage["source"] == {
        "file": "metrics/query_range.json",
        "series": "vllm:kv_cache_usage_perc",
        "time": "2026-11-29T17:33:05Z",
    }
    assert doc["findings"][0]["exhibits"][2]["source"]["line"] == 1204
    assert doc["impact"]["ttft"] == {"before": 0.033, "after": 4.4}
    assert doc["impact"]["latency_parts"]["queue"] == {"before": 0.0, "after": 3.9}
    assert doc["ceilings"][0]["bounds"][0]["inputs"]["N"] == {
        "value": 27520.0,
        "unit": "tokens",
        "source": "server.log:44",
    }
    assert doc["ceilings"][0]["bounds"][3]["refused"] == "No latency target was given."
    assert doc["coverage"]["files"][0]["lines"] == {
        "total": 1318,
        "matched": 1204,
        "ignored": 100,
        "unknown": 13,
        "damaged": 1,
        "bytes": {"matched": 110_000, "ignored": 9_000, "unknown": 990, "damaged": 44},
    }
    assert doc["coverage"]["files"][1]["lines"]["bytes"] is None
    assert doc["timeline"]["step_s"] == 2.0
    assert doc["timeline"]["engines"]["0"]["hit_rate"]["values"][20] is None
    assert doc["sweep"] is None


def test_identical_input_gives_identical_bytes(analysis):
    assert json.render(analysis) == json.render(copy.deepcopy(analysis))


def test_a_saved_document_reads_back(analysis, healthy):
    for one in (analysis, healthy):
        assert json.load(json.render(one)) == one


def test_a_sweep_reads_back(analysis):
    sweep = Sweep("max_num_seqs", (SweepRow(8.0, 0.85), SweepRow(64.0, 0.52)), (32.0, 64.0))
    one = replace(analysis, sweep=sweep)
    assert tree(one)["sweep"][1]["hit_rate"] == 0.52
    assert tree(one)["sweep_summary"]["hit_break"] == {"low": 32.0, "high": 64.0}
    assert json.load(json.render(one)) == one


def test_numbers_that_json_cannot_carry(analysis):
    unbounded = replace(analysis.ceilings[0], max_num_seqs=Limit(72.0, 66.0, math.inf))
    one = replace(analysis, ceilings=(unbounded,))
    assert tree(one)["ceilings"][0]["max_num_seqs"]["high"] is None
    assert json.load(json.render(one)).ceilings[0].max_num_seqs == Limit(72.0, 66.0, math.inf)


def test_file_names_that_are_not_utf8(analysis):
    name = b"s\xff.log".decode("utf-8", "surrogateescape")
    exhibit = replace(analysis.findings[0].exhibits[0], source=Where(name, line=1))
    finding = replace(analysis.findings[0], exhibits=(exhibit,))
    doc = tree(replace(analysis, findings=(finding,)))
    assert doc["findings"][0]["exhibits"][0]["source"]["file"] == "s\ufffd.log"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a JSON document"),
        ("[]", "the document should be an object"),
        ("{}", "schema_version None"),
        ('{"schema_version": "9.0"}', "this release reads 1.0"),
        ('{"schema_version": "1.4", "timeline": 3}', "timeline should be an object"),
    ],
)
def test_other_json_is_refused_with_a_reason(text, said):
    with pytest.raises(InputError, match=said):
        json.load(text)


def test_a_spoiled_document_names_the_place(analysis):
    doc = tree(analysis)
    del doc["findings"][0]["cause"]
    with pytest.raises(InputError, match="findings lacks 'cause'"):
        json.load(stdlib_json.dumps(doc))


@pytest.mark.parametrize("at", [0.0, 1796059925.325, 1795973505.0, -1.5])
def test_instants_read_back(at):
    assert seconds(iso(at)) == at


def test_instants_beyond_the_calendar_are_held_at_its_edge():
    assert iso(1e300) == "9999-12-31T23:59:59Z"
    with pytest.raises(InputError):
        seconds("yesterday")
