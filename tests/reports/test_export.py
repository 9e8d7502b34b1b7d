import json
from dataclasses import replace

import polars as pl
import pytest

from forensics.config import Options
from forensics.diary import EngineDiary, Epoch
from forensics.errors import UsageError
from forensics.evidence import (
    EVENTS,
    FACTS,
    SAMPLES,
    SERIES,
    Evidence,
    SourceInfo,
)
from forensics.reports.export import export
from forensics.reports.redaction import redacted
from forensics.timeline import SIGNALS, EngineTimeline, Timeline


@pytest.fixture
def evidence():
    series = pl.DataFrame(
        [
            {
                "series": 0,
                "source": 1,
                "offset": 12,
                "clock": "utc",
                "instance": "a:8000",
                "engine": "0",
                "metric": "vllm:num_preemptions_total",
                "labels": '{"job":"vllm"}',
                "edge": None,
            }
        ],
        schema=SERIES,
    )
    points = [{"series": 0, "stamp": 10.0 + t, "value": float(t)} for t in range(3)]
    return Evidence(
        sources=(SourceInfo("server.log", "server.log", "."), SourceInfo("q.json", "q.json", ".")),
        series=series,
        samples=pl.DataFrame(points, schema=SAMPLES),
        events=pl.DataFrame(schema=EVENTS),
        facts=pl.DataFrame(schema=FACTS),
    )


@pytest.fixture
def timeline():
    columns = {name: [0.5, None] for name in SIGNALS}
    grid = pl.DataFrame({"time": [10.0, 12.0], "elapsed_s": [None, 2.0], **columns})
    engines = tuple(
        EngineTimeline(
            engine=name,
            instance=None,
            step_s=2.0,
            grid=grid,
            log_grid=grid,
            origins={},
            marks=(),
            diary=EngineDiary(name, None, None, (Epoch(None, None),)),
        )
        for name in ("0", "1")
    )
    return Timeline(engines, ())


@pytest.fixture
def save(analysis):
    def saved(evidence, timeline, folder, options=Options()):  # noqa: B008 - frozen
        return export(evidence, timeline, folder, analysis, options)

    return saved


def test_the_tables_can_be_asked_together(save, evidence, timeline, tmp_path):
    written = save(evidence, timeline, tmp_path / "out")
    assert [path.name for path in written] == [
        "sources.parquet",
        "samples.parquet",
        "events.parquet",
        "facts.parquet",
        "timeline.parquet",
    ]
    found = pl.SQLContext(
        samples=pl.scan_parquet(tmp_path / "out" / "samples.parquet"),
        sources=pl.scan_parquet(tmp_path / "out" / "sources.parquet"),
    ).execute(
        "SELECT path, metric, max(value) AS most FROM samples JOIN sources USING (source) "
        "GROUP BY path, metric",
        eager=True,
    )
    assert found.row(0) == ("q.json", "vllm:num_preemptions_total", 2.0)


def test_the_timeline_has_every_engine_and_signal(save, evidence, timeline, tmp_path):
    save(evidence, timeline, tmp_path)
    table = pl.read_parquet(tmp_path / "timeline.parquet")
    assert table["engine"].to_list() == ["0", "0", "1", "1"]
    assert set(SIGNALS) <= set(table.columns)
    assert table["hit_rate"].null_count() == 2, "a gap stays a gap"


def test_the_same_evidence_gives_the_same_bytes(save, evidence, timeline, tmp_path):
    first = [path.read_bytes() for path in save(evidence, timeline, tmp_path / "a")]
    assert first == [path.read_bytes() for path in save(evidence, timeline, tmp_path / "b")]


def test_nothing_read_gives_empty_tables(save, evidence, tmp_path):
    save(evidence, Timeline((), ()), tmp_path)
    assert pl.read_parquet(tmp_path / "timeline.parquet").height == 0
    assert pl.read_parquet_schema(tmp_path / "events.parquet") == EVENTS


def test_a_folder_that_cannot_be_written_is_named(save, evidence, timeline, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        save(evidence, timeline, blocked)


def event(kind, **fields):
    row = dict.fromkeys(EVENTS)
    return row | {
        "source": 0,
        "offset": 0,
        "clock": "utc",
        "instance": "gpu-node-1",
        "kind": kind,
        "fields": json.dumps(fields, separators=(",", ":")),
    }


@pytest.fixture
def told(evidence):
    """Evidence with names and with what users wrote."""
    rows = [
        event("traceback", error="ValueError: no layer 'model.0' for 'my secret'", traceback=True),
        event("request_failed", request_id="my-own-id-1", error="ValueError: prompt my secret bad"),
        event("request_aborted", request_id="my-own-id-1"),
    ]
    facts = [dict.fromkeys(FACTS) | {"source": 0, "offset": 0, "clock": "utc"}]
    facts[0] |= {"key": "flag.model", "value": "/srv/secret-llm", "instance": "gpu-node-1"}
    return replace(
        evidence,
        sources=(SourceInfo("/home/alice/a.log", "/home/alice/a.log", "."), evidence.sources[1]),
        series=evidence.series.with_columns(
            labels=pl.lit('{"job":"vllm","model_name":"secret-llm","node":"10.1.2.3:9"}')
        ),
        events=pl.DataFrame(rows, schema=EVENTS),
        facts=pl.DataFrame(facts, schema=FACTS),
    )


def tables(folder):
    return {path.stem: pl.read_parquet(path).write_ndjson() for path in folder.iterdir()}


def test_what_users_wrote_is_left_out_unless_asked_for(save, told, timeline, tmp_path):
    save(told, timeline, tmp_path / "a")
    events = pl.read_parquet(tmp_path / "a" / "events.parquet")
    assert [json.loads(fields).get("error") for fields in events["fields"]] == [
        "ValueError: no layer 'model.0' for '…'",
        "ValueError",
        None,
    ]
    save(told, timeline, tmp_path / "b", Options(include_prompts=True))
    assert pl.read_parquet(tmp_path / "b" / "events.parquet").equals(told.events)


def test_names_have_the_stand_ins_of_the_reports(save, told, timeline, analysis, tmp_path):
    options = Options(anonymize=True)
    save(told, timeline, tmp_path, options)
    shown = tables(tmp_path)
    for secret in ("gpu-node-1", "my-own-id-1", "secret-llm", "10.1.2.3", "alice"):
        assert not any(secret in table for table in shown.values()), secret
    events = pl.read_parquet(tmp_path / "events.parquet")
    ids = {json.loads(fields).get("request_id") for fields in events["fields"]} - {None}
    assert len(ids) == 1, "one request keeps one name"
    reported = redacted(analysis, options).engines[0].epochs[0].model
    assert analysis.engines[0].epochs[0].model is None or reported.startswith("model-")
