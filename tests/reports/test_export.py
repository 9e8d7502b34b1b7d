import polars as pl
import pytest

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


def test_the_tables_can_be_asked_together(evidence, timeline, tmp_path):
    written = export(evidence, timeline, tmp_path / "out")
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


def test_the_timeline_has_every_engine_and_signal(evidence, timeline, tmp_path):
    export(evidence, timeline, tmp_path)
    table = pl.read_parquet(tmp_path / "timeline.parquet")
    assert table["engine"].to_list() == ["0", "0", "1", "1"]
    assert set(SIGNALS) <= set(table.columns)
    assert table["hit_rate"].null_count() == 2, "a gap stays a gap"


def test_the_same_evidence_gives_the_same_bytes(evidence, timeline, tmp_path):
    first = [path.read_bytes() for path in export(evidence, timeline, tmp_path / "a")]
    assert first == [path.read_bytes() for path in export(evidence, timeline, tmp_path / "b")]


def test_nothing_read_gives_empty_tables(evidence, tmp_path):
    export(evidence, Timeline((), ()), tmp_path)
    assert pl.read_parquet(tmp_path / "timeline.parquet").height == 0
    assert pl.read_parquet_schema(tmp_path / "events.parquet") == EVENTS


def test_a_folder_that_cannot_be_written_is_named(evidence, timeline, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        export(evidence, timeline, blocked)
