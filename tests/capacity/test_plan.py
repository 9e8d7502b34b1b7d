"""A ceiling from GPU, model and lengths, without a server."""

import subprocess
import sys
from dataclasses import replace

import pytest

from forensics.capacity.plan import Wanted, ceiling_for

SHARED = Wanted(
    "A100-80GB",
    "meta-llama/Meta-Llama-3-8B",
    context=2048,
    output=512,
    shared_prefix=1638,
    utilization=0.9,
    slo_itl_s=0.05,
)
CHAT = Wanted(
    "A100-80GB", "Meta-Llama-3-8B", 2580, 256, shared_prefix=400, turns=6, utilization=0.9
)


def bounds(plan):
    return {bound.name: bound for bound in plan.bounds}


def test_one_shared_prompt_with_a_latency_target() -> None:
    plan = ceiling_for(SHARED)
    found = bounds(plan)
    assert plan.pool.tokens == 448_656
    assert found["B_exh"].value == pytest.approx(612, abs=1)
    assert found["B_slo"].value == pytest.approx(135, abs=1)
    assert found["B_90"].value == pytest.approx(378, abs=2)
    assert (plan.limit.value, plan.binding) == (135, "B_slo")
    assert plan.limit.low < 135 < plan.limit.high


def test_slow_chat_is_limited_by_live_sessions_not_by_the_batch() -> None:
    plan = ceiling_for(replace(CHAT, think_s=60.0))
    assert bounds(plan)["B_exh"].value == pytest.approx(190, rel=0.02)
    # Histories differ widely between sessions: the safe batch keeps clear of exhaustion.
    assert 130 < plan.limit.value < 160
    assert plan.sessions.value == pytest.approx(174, rel=0.03)
    assert plan.sessions.low < 174 < plan.sessions.high
    assert "ceiling.note.seqs_do_not_restore" in {note.key for note in plan.notes}


def test_an_unknown_think_time_gives_a_table_and_no_single_number() -> None:
    plan = ceiling_for(CHAT)
    assert plan.sessions is None
    assert [gap for gap, _ in plan.gap_table] == [5.0, 15.0, 60.0, 300.0]
    assert dict(plan.gap_table)[60.0] == pytest.approx(174, rel=0.03)


def test_the_fields_formula_with_its_reserve() -> None:
    usual = replace(SHARED, context=2560 - 512, reserve_gib=9.0)
    assert bounds(ceiling_for(usual))["formula"].value == pytest.approx(147, abs=1)
    two = bounds(ceiling_for(replace(SHARED, keep_generations=2)))["formula"]
    assert two.inputs["reserve"].value == 2 * 1638
    assert "2 generations" in two.inputs["reserve"].source


def test_what_is_not_known_is_refused_with_a_reason() -> None:
    unknown = ceiling_for(replace(SHARED, gpu="A100X9000"))
    assert unknown.refused.key == "ceiling.refused.gpu_not_in_table"
    assert ceiling_for(replace(SHARED, gpu=None)).refused.key == "ceiling.refused.gpu"
    assert ceiling_for(replace(SHARED, model="my-model")).refused.key == "ceiling.refused.model"
    none = ceiling_for(replace(SHARED, gpu="L4", model="Meta-Llama-3-70B"))
    assert none.refused.key == "ceiling.refused.no_room"
    hybrid = ceiling_for(replace(SHARED, model="Qwen3-Next-80B-A3B-Instruct"))
    assert hybrid.refused.key == "ceiling.refused.hybrid"
    assert none.limit is None


def test_a_given_pool_needs_neither_gpu_nor_model() -> None:
    plan = ceiling_for(Wanted(context=2048, output=512, shared_prefix=1638, pool_tokens=448_656))
    assert plan.binding == "B_safe"
    assert plan.limit.value == pytest.approx(575, rel=0.01)


def test_memory_is_said_to_be_the_ceiling_of_small_cards() -> None:
    plan = ceiling_for(Wanted("L4", "Meta-Llama-3-8B", 2048))
    assert plan.binding == "B_safe"
    assert "ceiling.note.memory_first" in {note.key for note in plan.notes}


def test_fp8_and_more_gpus_raise_the_limit() -> None:
    base = bounds(ceiling_for(SHARED))["B_safe"].value
    fp8 = bounds(ceiling_for(replace(SHARED, kv_dtype="fp8")))["B_safe"].value
    assert fp8 == pytest.approx(2 * base, rel=0.05)
    two = bounds(ceiling_for(replace(SHARED, tensor_parallel=2)))["B_safe"].value
    assert two > 2 * base


def test_planning_starts_fast_and_pulls_in_no_frames() -> None:
    code = (
        "import sys; from forensics.capacity.plan import Wanted, ceiling_for;"
        "ceiling_for(Wanted('A100-80GB', 'Meta-Llama-3-8B', 2048, 512));"
        "bad = {'polars', 'numpy', 'pyarrow', 'altair'} & set(sys.modules);"
        "sys.exit(f'pulled in {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
