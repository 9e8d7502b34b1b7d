"""Look-alikes of a lost cache: what the hit rate alone would take for one another."""

import pytest

from forensics.catalog.messages import render
from forensics.pipeline import analyze

_STORM = {"preempted": 0.3, "running": 80, "waiting": 30, "usage": 0.99, "ttft": 8.0, "itl": 0.05,
          "queue": 6.0}  # fmt: skip


def _causes(analysis) -> set[str]:
    return {finding.cause for finding in analysis.findings}


def test_a_storm_that_is_over_has_an_end(server) -> None:
    storm = server().during(500, 800, hit=0.3, **_STORM)
    verdict = analyze([storm.write()]).verdict
    assert verdict.cause == "preemption-cliff"
    assert verdict.onset is not None and verdict.end is not None
    assert 495 <= verdict.onset[1] - storm.t0 <= 515
    assert 790 <= verdict.end - storm.t0 <= 815


def test_a_storm_that_never_changes_is_a_state(server) -> None:
    """No hit rate falls: preemption is the finding, its onset before the data."""
    verdict = analyze([server().always(hit=0.3, **_STORM).write()]).verdict
    assert verdict.cause == "preemption-thrash"
    assert verdict.end is None


def test_prompts_shorter_than_a_block_never_hit(server) -> None:
    path = server(hit_noise=0).always(prompt=12, hit=0, usage=0.01).write()
    assert analyze([path]).verdict.cause == "sub-block-prefix"


def test_caching_off_by_default_for_the_model_class(server) -> None:
    model = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    path = server(prefix_caching=False, model=model).always(hit=0).write()
    verdict = analyze([path]).verdict
    assert verdict.cause == "caching-disabled"
    assert verdict.summary.key == "PC105.model_class"
    assert "on from 0.28.0" in render(verdict.summary)


def test_caching_off_and_a_queue_that_came_later(server) -> None:
    """What was off all along is no reason why requests wait since noon."""
    slots = server(prefix_caching=False).always(hit=0, running=4, usage=0.03, requests=1.0)
    analysis = analyze([slots.during(300, 1201, waiting=12, queue=9.0, ttft=9.0).write()])
    assert analysis.verdict.cause == "seat-limit"
    assert "caching-disabled" in _causes(analysis)


def test_documents_without_reuse_and_requests_that_became_slow(server) -> None:
    """Low reuse explains no slowdown: that is said, and low reuse stays a finding."""
    slow = server(blocks=200_000).always(hit=0.03, prompt=600, requests=2)
    analysis = analyze([slow.during(600, 1201, ttft=3.0).write()])
    assert analysis.verdict.summary.key == "verdict.slow_outside"
    assert "low-reuse-workload" in _causes(analysis)


def test_documents_without_reuse(server) -> None:
    """One-off documents in a pool that hardly turns over: there was nothing to lose."""
    path = server(blocks=200_000).always(hit=0.03, prompt=600, requests=2).write()
    verdict = analyze([path]).verdict
    assert verdict.cause == "low-reuse-workload"


def test_stuck_cache_that_a_restart_mends(server) -> None:
    stuck = server().always(usage=0.2).during(500, 900, hit=0, ttft=0.5).during(900, 960, hit=0.4)
    verdict = analyze([stuck.restart(900, 40).write()]).verdict
    assert verdict.cause == "stuck-cache"


def test_stuck_cache_beside_a_replica_that_works(server) -> None:
    server().always(usage=0.2).during(500, 1201, hit=0, ttft=0.5).write()
    path = server(engine="1", seed=2).always(usage=0.2).write()
    verdict = analyze([path]).verdict
    assert verdict.cause == "stuck-cache"
    assert verdict.engine == "0"


def test_stuck_cache_while_the_logged_prompts_repeat(server) -> None:
    """Prompts in the log go on sharing 64 tokens of 80, and from some minute on nothing hits."""
    stuck = _with_prompts(server, lambda number, _at: number % 5)
    verdict = analyze([stuck.during(600, 1201, hit=0).write()]).verdict
    assert verdict.cause == "stuck-cache"


def test_prompts_that_stopped_sharing(server) -> None:
    """The same figures, but the logged prompts are all different from then on."""
    changed = _with_prompts(server, lambda number, at: number % 5 if at <= 600 else 1000 + number)
    verdict = analyze([changed.during(600, 1201, hit=0).write()]).verdict
    assert verdict.cause == "prefix-diversity-loss"


@pytest.mark.parametrize("release", ["0.10.2", "0.21.0", "0.32.0"])
@pytest.mark.parametrize("log", [True, False], ids=["log-too", "metrics-alone"])
def test_zero_hits_for_everyone_and_nothing_else_are_undecided(server, release, log) -> None:
    """From counters alone a stuck cache and a new template look the same: both are weighed."""
    frozen = server(version=release).always(usage=0.2).during(500, 1201, hit=0, ttft=0.5)
    analysis = analyze([frozen.write(log=log)])
    verdict = analysis.verdict
    assert verdict.cause == "insufficient-evidence"
    assert [cause for cause, _ in verdict.candidates] == ["prefix-diversity-loss", "stuck-cache"]
    assert [share for _, share in verdict.candidates] == pytest.approx([0.6, 0.4], abs=0.1)
    assert "same prompt" in render(verdict.runner_up.would_decide)
    assert "eviction-pressure" not in _causes(analysis)


def test_restart_with_a_smaller_pool_is_cold_first_and_eviction_stays(server) -> None:
    small = server().always(usage=0.25).during(600, 1201, usage=0.6, hit=0.4, ttft=0.5)
    analysis = analyze([small.during(600, 640, hit=0.05).restart(560, 40, blocks=9000).write()])
    assert analysis.verdict.cause == "eviction-pressure"
    assert "cold-cache" in _causes(analysis)


def test_speculative_decoding_takes_memory_between_two_runs(server) -> None:
    small = server().always(usage=0.3).during(600, 1201, usage=0.6, hit=0.35, ttft=0.6)
    small.restart(
        560,
        40,
        blocks=14000,
        speculative_config={"method": "ngram", "num_speculative_tokens": 5},
    )
    analysis = analyze([small.during(600, 630, hit=0.1).write()])
    assert analysis.verdict.cause == "eviction-pressure"
    pools = [epoch.kv_pool.blocks for epoch in analysis.engines[0].epochs]
    assert pools[0] == 28125 and pools[-1] == 14000


def test_an_incident_inside_a_longer_one(server) -> None:
    """Longer prompts lower the rate for good; a storm comes and goes inside, and both are named."""
    both = server().during(300, 1201, prompt=1750, hit=0.4, ttft=0.4)
    analysis = analyze([both.during(700, 900, hit=0.1, **_STORM).write()])
    verdict = analysis.verdict
    named = {verdict.cause, *(item.cause for item in verdict.contributing)}
    assert {"prefix-diversity-loss", "preemption-cliff"} <= named


def _with_prompts(server, prefix_of):
    """Log requests with token ids, as releases up to 0.11.0 did."""
    talking = server(version="0.10.0", hit_noise=0.0).always(
        requests=1, prompt=80, hit=0.8, output=50, running=3, usage=0.2
    )
    for number, at in enumerate(range(2, 1200)):
        base = 100 * prefix_of(number, at)
        tokens = [*range(base, base + 64), *(200_000 + 16 * number + i for i in range(16))]
        talking.line(
            at,
            f"INFO [logger.py:41] Received request cmpl-{number:032x}-0: prompt: '', params: "
            f"SamplingParams(n=1, temperature=0.7, max_tokens=50), prompt_token_ids: {tokens}, "
            "prompt_embeds shape: None, lora_request: None.",
        )
    return talking
