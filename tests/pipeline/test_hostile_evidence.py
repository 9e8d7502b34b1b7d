"""Whatever stands in the rows, the analysis comes to an answer."""

import json
import math

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from forensics.config import Options
from forensics.pipeline.analyze import run_evidence
from forensics.reports.json import render

METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:num_preemptions_total",
    "vllm:gpu_prefix_cache_hit_rate",
    "vllm:time_to_first_token_seconds_sum",
    "vllm:time_to_first_token_seconds_count",
    "process_start_time_seconds",
    "vllm:prompt_tokens_created",
)
# A failing example is large and slow to shrink, and readable enough as it is.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
KINDS = (
    "stats_periodic", "preemption", "process_start", "process_stop", "engine_death", "cache_reset",
    "request_aborted", "http_access", "prefix_hit_rate", "init_engine", "oom", "sleep",
)  # fmt: skip
FACTS = (
    "vllm.version", "flag.max_num_seqs", "pool.tokens", "cache_config.block_size", "gpu.name",
    "memory.total_gib", "model.name", "config.tensor_parallel_size", "engine.generation",
    "pool.num_gpu_blocks", "max_model_len",
)  # fmt: skip
odd = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -1.0, 1e-308, 1e308, 2.0**63, 1795973585.0]),
)
stamps = st.one_of(st.floats(1.79e9, 1.791e9), st.sampled_from([0.0, -1.0, 1e12, 9.4e7]), st.none())
values = st.one_of(odd, st.text(max_size=8), st.booleans(), st.none(), st.integers(-5, 10**12))
fields = st.dictionaries(
    st.sampled_from(
        ["running", "waiting", "kv_usage_pct", "prefix_hit_rate_pct", "prompt_tps",
         "generation_tps", "total_cumulative", "status", "count", "request_ids", "path_class"]
    ),
    values,
    max_size=6,
)  # fmt: skip


def writable(row):
    return json.loads(json.dumps(row, default=str).replace("NaN", "null").replace("Infinity", "1"))


series = st.lists(
    st.tuples(
        st.sampled_from(METRICS),
        st.dictionaries(
            st.sampled_from(["engine", "instance", "pid"]),
            st.sampled_from(["0", "1", "a:8000", 'é\n"}']),
            max_size=2,
        ),
        st.lists(st.tuples(st.floats(1.79e9, 1.791e9), odd), max_size=25),
    ),
    max_size=8,
)
events = st.lists(st.tuples(stamps, st.sampled_from(KINDS), fields.map(writable)), max_size=25)
facts = st.lists(
    st.tuples(stamps, st.sampled_from(FACTS), st.one_of(st.text(max_size=10), odd.map(str))),
    max_size=8,
)


@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=PHASES,
)
@given(series, events, facts, st.sampled_from(["utc", "yearless", "local"]))
def test_odd_rows_never_break_the_analysis(evidence_of, rows, lines, said, clock):
    rows = [*rows, ("vllm:num_requests_running", {}, [(1.79e9, 1.0), (1.79e9 + 10, 2.0)])]
    evidence = evidence_of(rows, lines, said, clock=clock)
    outcome = run_evidence(evidence, Options())
    verdict = outcome.analysis.verdict
    assert 0.0 <= verdict.confidence <= 1.0
    assert json.loads(render(outcome.analysis))["verdict"]["cause"] == verdict.cause


def steady(instance, rates):
    """Counters of one replica with the given interval hit rates, 15 s apart, 2,000 tokens each."""
    times = [1.79e9 + 15.0 * index for index in range(len(rates) + 1)]
    queries = [2000.0 * index for index in range(len(rates) + 1)]
    hits = [0.0]
    for rate in rates:
        hits.append(hits[-1] + 2000.0 * rate)
    whole = {
        "vllm:prefix_cache_queries_total": queries,
        "vllm:prefix_cache_hits_total": hits,
        "vllm:prompt_tokens_total": queries,
        "vllm:generation_tokens_total": [500.0 * index for index in range(len(times))],
        "vllm:time_to_first_token_seconds_count": [20.0 * index for index in range(len(times))],
        "vllm:num_requests_running": [6.0] * len(times),
        "vllm:num_requests_waiting": [0.0] * len(times),
        "vllm:kv_cache_usage_perc": [0.1] * len(times),
        "vllm:num_preemptions_total": [0.0] * len(times),
    }
    return [
        (name, {"instance": instance}, list(zip(times, points, strict=True)))
        for name, points in whole.items()
    ]


def test_replica_that_fell_is_named_and_the_other_is_not(evidence_of):
    calm = [0.8 + 0.01 * math.sin(index) for index in range(80)]
    fallen = calm[:40] + [0.01 * (index % 2) for index in range(40)]
    analysis = run_evidence(
        evidence_of([*steady("a:8000", calm), *steady("b:8000", fallen)]), Options()
    ).analysis
    assert [engine.engine for engine in analysis.engines] == ["a:8000", "b:8000"]
    assert analysis.verdict.engine == "b:8000"
    assert {item.engine for item in analysis.findings if item.onset} == {"b:8000"}
    assert analysis.verdict.onset == pytest.approx((1.79e9 + 600.0, 1.79e9 + 615.0))


def test_engines_are_analysed_as_if_alone(evidence_of):
    calm = [0.8 + 0.01 * math.sin(index) for index in range(80)]
    fallen = calm[:40] + [0.2 + 0.01 * (index % 2) for index in range(40)]
    both = run_evidence(
        evidence_of([*steady("a:8000", calm), *steady("b:8000", fallen)]), Options()
    )
    alone = run_evidence(evidence_of(steady("b:8000", fallen)), Options())
    assert both.timeline.engines[1].grid.equals(alone.timeline.engines[0].grid)
    assert both.analysis.verdict.cause == alone.analysis.verdict.cause
    assert both.analysis.verdict.onset == alone.analysis.verdict.onset
