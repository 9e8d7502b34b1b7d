"""The characteristic-time model against the figures of docs/ceiling.md."""

from dataclasses import replace

import pytest

from forensics.capacity.reuse_model import (
    StepCost,
    Workload,
    cliff,
    load_point,
    plateau,
    zipf,
)

A100_8B = StepCost(
    fixed=0.002 + 16.06e9 / (0.8 * 2039e9),
    per_context=131_072 / (0.8 * 2039e9),
    per_prompt=2 * 8.03e9 / (0.45 * 312e12),
)
POOL = 448_656
CHAT_60 = Workload(shared=400, fresh=150, output=256, turns=6, think_s=60)
CHAT_10 = Workload(shared=400, fresh=150, output=256, turns=6, think_s=10)
ONE_PROMPT = Workload(shared=1638, fresh=410, output=512)


def test_lengths_of_a_session() -> None:
    assert CHAT_60.history == 2030
    assert CHAT_60.private == 2340
    assert CHAT_60.left_behind == 2436
    assert ONE_PROMPT.private == 730


def test_slow_chat_loses_its_hits_long_before_the_pool_is_full() -> None:
    three_quarters = cliff(POOL, CHAT_60, A100_8B, 0.75)
    assert not three_quarters.exhaustion
    # Block-exact: 23 running, 249 live; the published model: 20.5 and 231.
    assert three_quarters.point.batch == pytest.approx(20.5, rel=0.05)
    assert three_quarters.point.clients == pytest.approx(231, rel=0.02)
    assert three_quarters.point.usage < 0.15
    assert cliff(POOL, CHAT_60, A100_8B, 0.90).point.clients == pytest.approx(174, rel=0.03)
    assert cliff(POOL, CHAT_60, A100_8B, 0.95).point.clients == pytest.approx(150, rel=0.03)


def test_fast_chat_breaks_at_the_same_number_of_clients_but_a_larger_batch() -> None:
    found = cliff(POOL, CHAT_10, A100_8B, 0.75)
    assert found.point.batch == pytest.approx(140, rel=0.03)
    assert found.point.clients == pytest.approx(203, rel=0.01)


@pytest.mark.parametrize(
    ("prefixes", "batch"),
    [(1, 613), (64, 472), (400, 252)],
)
def test_shared_prompts_have_no_cliff_before_exhaustion(prefixes, batch) -> None:
    found = cliff(POOL, replace(ONE_PROMPT, popularity=zipf(prefixes, 0.6)), A100_8B)
    assert found.exhaustion
    assert found.point.batch == pytest.approx(batch, rel=0.02)


def test_one_shared_prompt_hits_alike_at_any_batch() -> None:
    for batch in (1, 32, 135, 400):
        assert load_point(POOL, ONE_PROMPT, A100_8B, batch).hit_rate == pytest.approx(
            0.80, abs=0.01
        )


def test_more_running_requests_raise_the_hits_of_many_tenants() -> None:
    # 150 tenants of 2,000-token prompts, 2,000-token outputs: 0.58, 0.64, 0.67 block-exact.
    tenants = Workload(1800, 200, 2000, popularity=zipf(150, 1.0))
    rates = [load_point(250_000, tenants, A100_8B, batch).hit_rate for batch in (8, 32, 64)]
    assert rates == sorted(rates)


def test_the_plateau_of_sessions_is_at_little_load() -> None:
    top = plateau(POOL, CHAT_60, A100_8B)
    assert top.hit_rate == pytest.approx(2430 / 2580, abs=0.01)
    assert top.batch <= 2


def test_a_larger_pool_never_lowers_hits_or_the_cliff() -> None:
    last = 0.0
    for pool in (100_000, 200_000, 400_000, 800_000):
        found = cliff(pool, CHAT_60, A100_8B, 0.9).point.clients
        assert found > last
        last = found
    rates = [load_point(pool, CHAT_60, A100_8B, 20).hit_rate for pool in (200_000, 400_000)]
    assert rates[0] <= rates[1]
