"""Units, rounding and monotonicity: a larger pool never lowers a bound, longer never raises one."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forensics.capacity.bounds import (
    Interval,
    exhaustion,
    formula_bound,
    resampled_safe_batch,
    safe_batch,
    safe_bound,
)
from forensics.capacity.demand import Demand, demand_of
from forensics.capacity.kv_layout import KvLayout, kv_layout
from forensics.capacity.plan import Wanted, ceiling_for
from forensics.capacity.pool import reckoned_pool
from forensics.capacity.residence import Session, residence, sessions_kept
from forensics.capacity.reuse_model import StepCost, Workload, load_point
from forensics.catalog.gpus import GIB, gpus
from forensics.catalog.models import geometry, models

pools = st.floats(1_000, 5_000_000)
lengths = st.floats(1, 50_000)
grow = st.floats(1.0, 20.0)
LINEAR = [name for name, model in models().items() if model.kind in ("GQA", "MHA", "MQA", "MLA")]


@given(pools, grow, lengths, lengths, st.floats(0, 5))
def test_a_larger_pool_never_lowers_the_safe_batch(pool, factor, mean, spread, z) -> None:
    before = safe_batch(pool, 0.0, mean, spread, z)
    assert safe_batch(pool * factor, 0.0, mean, spread, z) >= before * (1 - 1e-9)
    assert before <= exhaustion(pool, 0.0, mean) * (1 + 1e-9)


@given(pools, lengths, lengths, grow)
def test_longer_requests_never_raise_a_bound(pool, prompt, output, factor) -> None:
    size = Interval.within(pool, 0.04)
    short, long = demand_of(prompt, output), demand_of(prompt * factor, output * factor)
    for before, after in zip(
        safe_bound(size, "", short, 20.0, ""), safe_bound(size, "", long, 20.0, ""), strict=True
    ):
        assert after.value <= before.value * (1 + 1e-9)
        assert after.low <= before.low * (1 + 1e-9)
        assert before.low <= before.value <= before.high
    average = prompt + output
    formula = [
        formula_bound(size, "", Interval.exact(average * f), 0.0, ("", "")).value
        for f in (1.0, factor)
    ]
    assert formula[1] <= formula[0]


@given(pools, st.floats(0, 2_000_000), lengths)
def test_shared_tokens_never_raise_a_bound_and_a_full_pool_holds_nobody(pool, shared, mean) -> None:
    assert exhaustion(pool, shared, mean) <= exhaustion(pool, 0.0, mean)
    assert safe_batch(pool, pool + shared, mean, mean, 3.0) == 0.0


@given(lengths, lengths, st.floats(0, 3), st.floats(0, 3))
def test_the_bound_solves_its_own_equation(prompt, output, a, b) -> None:
    demand = demand_of(prompt, output, unshared_cv=a, output_cv=b)
    pool = 50 * demand.mean
    batch = safe_batch(pool, 0.0, demand.mean, demand.deviation, 3.0)
    assert batch * demand.mean + 3.0 * demand.deviation * batch**0.5 == pytest.approx(pool)


@settings(max_examples=25, deadline=None)
@given(st.floats(20_000, 400_000), grow, st.lists(st.floats(10, 5_000), min_size=5, max_size=60))
def test_resampling_is_monotone_and_repeatable(pool, factor, sample) -> None:
    before = resampled_safe_batch(pool, 0.0, sample, 20.0)
    assert resampled_safe_batch(pool, 0.0, sample, 20.0) == before
    assert resampled_safe_batch(pool, 0.0, [v * factor for v in sample], 20.0) <= before
    assert before <= exhaustion(pool, 0.0, sum(sample) / len(sample)) + 1


@given(st.sampled_from(LINEAR), st.integers(1, 16), st.sampled_from([8, 16, 32, 64, 128]))
def test_blocks_round_down_and_hold_whole_tokens(name, ranks, block_size) -> None:
    model = geometry(name)
    assume(model.heads % ranks == 0)
    layout = kv_layout(model, tensor_parallel=ranks, block_size=block_size)
    assert layout.bytes_per_block == layout.bytes_per_token * block_size
    pool = reckoned_pool(5000.0, 0.9, model.weight_bytes, layout, tensor_parallel=ranks)
    free = (5000.0 * 0.9 - model.weight_bytes / ranks / GIB - 1.6) * GIB
    assert pool.blocks * layout.bytes_per_block <= free
    assert (pool.blocks + 1) * layout.bytes_per_block > free
    assert pool.tokens == pool.blocks * block_size
    assert pool.low <= pool.tokens <= pool.high


@given(st.sampled_from(list(models())), st.integers(1, 8))
def test_more_ranks_never_enlarge_the_cache_of_one_token(name, ranks) -> None:
    model = geometry(name)
    assume(model.heads % ranks == 0)
    assume(model.kv_heads % ranks == 0 or ranks % model.kv_heads == 0)
    one, many = kv_layout(model), kv_layout(model, tensor_parallel=ranks)
    if isinstance(one, KvLayout):
        assert many.bytes_per_token <= one.bytes_per_token
        # All ranks together never need less than one alone: what is not split is replicated.
        assert many.bytes_per_token * ranks >= one.bytes_per_token * 0.999
        assert one.blocks_for(100) <= one.blocks_for(200)


@given(pools, st.floats(0, 1), st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5))
def test_the_residence_lies_in_its_bracket(pool, usage, computed, generated, cached) -> None:
    found = residence(pool, usage, computed, generated, cached)
    assert found.low_s <= found.high_s
    assert found.low_s * (1 - 1e-9) <= found.point_s <= found.high_s
    more = residence(pool * 2, usage, computed, generated, cached)
    assert more.point_s >= found.point_s


@given(pools, st.floats(1, 20_000), st.floats(0, 5_000), st.floats(0, 100), st.floats(0, 600))
def test_sessions_kept_grow_with_the_pool_and_fall_with_the_gap(pool, own, turn, held, gap) -> None:
    session = Session(own, turn, held)
    kept = sessions_kept(pool, 0.0, session, gap)
    assert sessions_kept(pool * 1.5, 0.0, session, gap) >= kept
    assert sessions_kept(pool, 0.0, session, gap + 60) <= kept * (1 + 1e-9)
    assert kept <= pool / own * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(20_000, 1_000_000),
    st.floats(0, 3_000),
    st.floats(10, 2_000),
    st.floats(10, 2_000),
    st.floats(1, 10),
    st.floats(1, 120),
    st.floats(0.1, 200),
)
def test_the_model_stays_within_its_range(pool, shared, fresh, output, turns, think, batch) -> None:
    load = Workload(shared, fresh, output, turns, think)
    cost = StepCost(0.012, 8e-8, 1e-4)
    point = load_point(pool, load, cost, batch)
    assert 0 <= point.hit_rate <= 1
    assert 0 <= point.usage <= 1
    assert point.step_s >= cost.fixed
    assert point.clients >= batch * (1 - 1e-9)
    assert (
        point.exhausted == (load.shared_held(point.batch) + batch * load.private > pool)
        or point.usage > 0.98
    )


@pytest.mark.parametrize("gpu", [name for name, spec in gpus().items() if spec.cuda_gib > 23])
def test_every_card_gets_a_limit_that_longer_contexts_lower(gpu) -> None:
    last = float("inf")
    for context in (512, 2048, 8192):
        wanted = Wanted(gpu, "Meta-Llama-3-8B", context, 256, shared_prefix=0)
        plan = ceiling_for(wanted)
        assert plan.limit.low <= plan.limit.value <= plan.limit.high
        assert plan.limit.value <= last
        last = plan.limit.value
        fp8 = ceiling_for(replace(wanted, kv_dtype="fp8"))
        assert fp8.limit.value >= plan.limit.value


def test_a_demand_of_nothing_has_no_spread() -> None:
    assert demand_of(100, 1, unshared_cv=0, output_cv=0) == Demand(
        100.5,
        pytest.approx((1 / 3 - 1 / 4) ** 0.5),
        0.0,
        pytest.approx(80.4),
        pytest.approx(120.6),
        demand_of(100, 1, unshared_cv=0, output_cv=0).steps,
    )
