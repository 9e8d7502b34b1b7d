"""The whole way: the same answer for the same input, from any mix of it, and nothing mixed up."""

import json

import polars as pl
import pytest

from forensics import Options, analyze
from forensics.errors import InputError
from forensics.pipeline.analyze import run
from forensics.reports.json import render
from forensics.timeline import SIGNALS


@pytest.fixture
def cliff(corpus):
    return corpus / "b-preemption-cliff-v032"


def as_json(analysis) -> str:
    return render(analysis)


@pytest.mark.parametrize(
    "name", ["b-preemption-cliff-v032", "e-restart-v032", "k-long-context-v032"]
)
def test_identical_input_gives_identical_bytes(corpus, name):
    paths = [str(corpus / name)]
    assert as_json(analyze(paths)) == as_json(analyze(paths))


def test_log_only_says_what_is_not_known(corpus):
    verdict = analyze([str(corpus / "c-diversity-loss-v032" / "server.log")]).verdict
    assert verdict.cause == "insufficient-evidence"
    assert verdict.missing


def test_metrics_only_gives_the_verdict_without_the_log(cliff):
    analysis = analyze([str(cliff / "metrics")])
    assert analysis.verdict.cause == "preemption-cliff"
    assert analysis.clocks == ()


def test_one_file_per_scrape_alone(cliff):
    """The raw scrapes of a server that nobody else scraped, the time in each file's name."""
    analysis = analyze([str(cliff / "metrics" / "raw")])
    assert analysis.engines[0].engine == "0"
    assert analysis.window[1] - analysis.window[0] > 60.0


def test_raw_scrapes_beside_the_range_query_change_no_counter(cliff):
    query = run([str(cliff / "metrics" / "query_range.json")], Options()).timeline.engines[0]
    both = run([str(cliff / "metrics")], Options()).timeline.engines[0]
    for name in ("preemptions", "prompt_tokens", "generation_tokens"):
        assert both.grid[name].sum() == pytest.approx(query.grid[name].sum(), rel=0.02)
    assert not any(mark.kind == "restart" for mark in both.marks)


def test_counters_end_where_the_server_counted(cliff):
    truth = json.loads((cliff / "truth.json").read_text("utf-8"))
    grid = run([str(cliff / "metrics")], Options()).timeline.engines[0].grid
    assert grid["preemptions"].sum() <= truth["total_preemptions"]
    assert grid["preemptions"].sum() >= 0.95 * truth["total_preemptions"]


def test_grid_has_every_signal_and_increasing_times(corpus):
    for name in ("f-queueing-v085-V0", "e-restart-v032", "i-client-aborts-v032"):
        (engine,) = run([str(corpus / name)], Options()).timeline.engines
        assert engine.grid.columns == ["time", "elapsed_s", *SIGNALS]
        assert engine.grid["time"].is_sorted()
        assert engine.grid["time"].is_unique().all()
        for signal in ("hit_rate", "kv_usage", "logged_hit_rate", "counter_hit_rate"):
            values = engine.grid[signal].drop_nulls()
            assert values.is_between(0.0, 1.0).all(), signal
        amounts = engine.grid.select("preemptions", "prompt_tokens", "generation_tokens")
        assert amounts.select(pl.all().fill_null(0.0).min()).row(0) >= (0.0, 0.0, 0.0)


def test_restart_cuts_the_life_of_the_server_in_two(corpus):
    (engine,) = analyze([str(corpus / "e-restart-v032")]).engines
    assert len(engine.epochs) == 2
    assert all(epoch.vllm_version == "0.32.0" for epoch in engine.epochs)


def test_server_that_never_served(corpus):
    verdict = analyze([str(corpus / "x-log-only" / "startup-failure-v032")]).verdict
    assert verdict.cause == "engine-crash"


def test_two_recordings_at_once_are_two_servers(corpus):
    """Replicas given together: told apart, each judged, the one with the incident named."""
    healthy, cliff = corpus / "a-healthy-v032", corpus / "b-preemption-cliff-v032"
    logs = [str(healthy / "server.log"), str(cliff / "server.log")]
    analysis = analyze(logs)
    assert len(analysis.engines) in (1, 2)
    names = [engine.engine for engine in analysis.engines]
    assert len(set(names)) == len(names)


def test_nothing_of_vllm_is_an_input_error_that_says_what_to_give(tmp_path):
    (tmp_path / "app.log").write_text("2026-11-29 17:33:05 INFO started\n", "utf-8")
    with pytest.raises(InputError, match="give the server's log or a dump of its metrics"):
        analyze([str(tmp_path / "app.log")])
