"""The worked examples of docs/ceiling.md, by hand or from block-exact runs."""

from math import exp, sqrt

import pytest

from forensics.capacity.bounds import (
    Interval,
    excursion_quantile,
    exhaustion,
    formula_from_memory,
    resampled_safe_batch,
    safe_batch,
    safe_bound,
)
from forensics.capacity.demand import demand_of, fit_line, heavy_tailed
from forensics.capacity.kv_layout import kv_layout
from forensics.capacity.pool import reckoned_pool, stated_pool
from forensics.capacity.residence import Session, residence, sessions_kept
from forensics.capacity.reuse_model import zipf
from forensics.capacity.step_time import Machine, fitted, knee_bound, roofline, slo_bound
from forensics.catalog.gpus import best
from forensics.catalog.messages import Message
from forensics.catalog.models import geometry

GIB = 1 << 30
GB = 10**9


def layout(name, **options):
    return kv_layout(geometry(name), **options)


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("meta-llama/Meta-Llama-3-8B", 131_072),
        ("mistralai/Mistral-7B-Instruct-v0.3", 131_072),
        ("meta-llama/Llama-2-7b-hf", 524_288),
        ("Qwen/Qwen2.5-7B", 57_344),
        ("meta-llama/Llama-3.2-3B", 114_688),
        ("Qwen/Qwen2.5-32B", 262_144),
        ("Qwen/Qwen3-32B", 262_144),
        ("meta-llama/Meta-Llama-3-70B", 327_680),
        ("deepseek-ai/DeepSeek-V3", 70_272),
    ],
)
def test_bytes_per_token(name, bytes_per_token) -> None:
    assert layout(name).bytes_per_token == bytes_per_token


def test_a_block_of_llama_3_8b_is_two_mebibytes_and_fp8_halves_it() -> None:
    assert layout("Meta-Llama-3-8B").bytes_per_block == 2 * 2**20
    assert layout("Meta-Llama-3-8B", kv_dtype="fp8").bytes_per_block == 2**20
    assert layout("DeepSeek-V3", kv_dtype="fp8_ds_mla").bytes_per_token == 40_016


def test_tensor_parallel_ranks_replicate_heads_and_latents() -> None:
    assert layout("Meta-Llama-3-70B", tensor_parallel=4).bytes_per_token == 81_920
    four = layout("Qwen3-30B-A3B", tensor_parallel=4)
    eight = layout("Qwen3-30B-A3B", tensor_parallel=8)
    assert (four.heads_per_rank, four.replicated) == (1, False)
    assert (eight.heads_per_rank, eight.replicated) == (1, True)
    assert eight.bytes_per_token == four.bytes_per_token
    assert layout("DeepSeek-V3", tensor_parallel=8).bytes_per_token == 70_272
    assert layout("Meta-Llama-3-8B", pipeline_parallel=3).bytes_per_token == 11 * 4096


def test_sliding_window_groups_follow_the_hybrid_manager() -> None:
    gemma = layout("gemma-3-27b-it")
    assert (gemma.full_groups, gemma.window_groups) == (1, 6)
    # 10 layers per group, 16 KV heads of 128, 16 bits: one page of 16 tokens.
    assert gemma.bytes_per_block == 10 * 2 * 16 * 128 * 2 * 16
    oss = layout("gpt-oss-20b")
    assert (oss.full_groups, oss.window_groups) == (1, 1)
    assert oss.blocks_for(4096) == 256 + 128 // 16 + 1
    before = layout("gemma-3-27b-it", version=(0, 9, 0))
    assert before.linear
    assert before.bytes_per_token == 62 * 2 * 16 * 128 * 2


def test_what_cannot_be_computed_safely_is_refused() -> None:
    assert layout("Qwen3-Next-80B-A3B-Instruct") == Message(
        "ceiling.refused.hybrid", {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct"}
    )
    assert layout("Meta-Llama-3-8B", kv_dtype="turboquant").key == "ceiling.refused.kv_dtype"
    assert layout("Meta-Llama-3-8B", tensor_parallel=3).key == "ceiling.refused.heads"
    assert isinstance(layout("DeepSeek-V2-Lite", version=(0, 6, 6)), Message)


@pytest.mark.parametrize(
    ("gpu", "model", "tokens"),
    [
        ("A100-80GB", "Meta-Llama-3-8B", 448_656),
        ("A100-40GB", "Meta-Llama-3-8B", 154_768),
        ("H100", "Meta-Llama-3-8B", 447_616),
        ("H200", "Meta-Llama-3-8B", 895_072),
        ("L40S", "Meta-Llama-3-8B", 191_856),
        ("L4", "Meta-Llama-3-8B", 26_784),
        ("A10", "Meta-Llama-3-8B", 26_416),
        ("T4", "Llama-3.2-3B", 51_808),
        ("MI300X", "Meta-Llama-3-8B", 1_275_872),
    ],
)
def test_pools_reckoned_from_gpu_and_model(gpu, model, tokens) -> None:
    spec, shape = best(gpu), geometry(model)
    pool = reckoned_pool(spec.cuda_gib, 0.9, shape.weight_bytes, kv_layout(shape))
    assert pool.tokens == pytest.approx(tokens, rel=0.04)
    assert pool.low < tokens < pool.high


def test_the_pool_of_llama_3_8b_on_an_a100_to_the_block() -> None:
    shape = geometry("Meta-Llama-3-8B")
    pool = reckoned_pool(79.25, 0.9, shape.weight_bytes, kv_layout(shape))
    assert pool.blocks == 28_041
    assert pool.tokens == 448_656
    # A public start-up: 112.61 GiB of cache are 57,656 blocks.
    assert 112.61 * GIB // layout("Meta-Llama-3-8B").bytes_per_block == 57_656


def test_weights_that_do_not_fit_leave_no_pool() -> None:
    shape = geometry("Meta-Llama-3-70B")
    assert reckoned_pool(79.25, 0.9, shape.weight_bytes, kv_layout(shape)) is None


def test_stated_pools_have_no_error() -> None:
    assert stated_pool(None, None, 16, "log") is None
    pool = stated_pool(114_656, None, 16, "log")
    assert (pool.low, pool.high, pool.blocks) == (114_656, 114_656, 7166)
    assert stated_pool(None, 512, 32, "metrics").tokens == 16_384


def test_the_fields_formula_gives_188_not_47() -> None:
    llama = layout("Meta-Llama-3-8B").bytes_per_token
    in_gib = formula_from_memory(56 * GIB, 9 * GIB, 2048, llama)
    in_gb = formula_from_memory(56 * GB, 9 * GB, 2048, llama)
    assert int(in_gib) == 188
    assert int(in_gb) == 175
    # Both in decimal units: 47 GB over 256 MB.
    assert round(47_000 / 256) == 184
    # 47 would be right for requests of 8,192 tokens.
    assert formula_from_memory(56 * GIB, 9 * GIB, 8192, llama) == 47


def test_one_shared_prompt() -> None:
    demand = demand_of(410, 512, shared=1638)
    assert demand.mean == 730
    assert demand.deviation == pytest.approx(332, abs=0.5)
    assert demand.deviation == pytest.approx(sqrt(205**2 + 512**2 * (1.25**3 / 3 - 0.625**2)))
    assert exhaustion(448_656, 1638, demand.mean) == pytest.approx(612, abs=0.5)
    assert excursion_quantile(20) == pytest.approx(3.45, abs=0.01)
    assert safe_batch(448_656, 1638, demand.mean, demand.deviation, 3.45) == pytest.approx(
        575, abs=0.5
    )
    safe, end = safe_bound(Interval.exact(448_656), "log", demand, 20.0, "given")
    assert safe.low < safe.value < end.value < end.high
    assert safe.steps[-1].endswith("-> B = 575")


@pytest.mark.parametrize(
    ("tenants", "reference"),
    [(1, 613), (64, 472), (400, 252)],
)
def test_exhaustion_against_block_exact_runs(tenants, reference) -> None:
    # Prefixes of 1,638 tokens; a tenant's prefix is held only while one of its requests runs.
    popularity = zipf(tenants, 0.6)

    def running(batch: float) -> float:
        held = 1638 * sum(1 - exp(-batch * share) for share in popularity)
        return exhaustion(448_656, held, 730)

    batch = 613.0
    for _ in range(100):
        batch = 0.5 * (batch + running(batch))
    assert batch == pytest.approx(reference, rel=0.05)


def test_latency_target_and_plateau() -> None:
    shape = geometry("Meta-Llama-3-8B")
    machine = Machine(best("A100-80GB"), shape.weight_bytes, shape.params, 131_072)
    step = roofline(machine, 1638 + 730, 410 / 512)
    assert step.fixed.value == pytest.approx(0.0119, abs=0.0001)
    assert step.slope.value == pytest.approx(0.000283, abs=0.000002)
    assert slo_bound(step, 0.050, "operator").value == pytest.approx(135, abs=1)
    assert knee_bound(step).value == pytest.approx(378, abs=3)


STEP_TABLE = [
    # gpu, model, step ms at B = 1, 32, 64, 128; plateau tok/s; B_half
    ("A100-80GB", "Meta-Llama-3-8B", (12.0, 17.1, 22.4, 32.9), 6080, 71),
    ("A100-40GB", "Meta-Llama-3-8B", (15.1, 21.8, 28.7), 4630, 69),
    ("H100", "Meta-Llama-3-8B", (8.1, 11.2, 14.4, 20.8), 9980, 79),
    ("H200", "Meta-Llama-3-8B", (6.3, 8.4, 10.7, 15.1), 14300, 88),
    ("L40S", "Meta-Llama-3-8B", (25.6, 37.7, 50.1), 2570, 64),
    ("L4", "Meta-Llama-3-8B", (70.0,), 890, 61),
    ("A10", "Meta-Llama-3-8B", (36.0,), 1790, 63),
    ("T4", "Llama-3.2-3B", (28.0,), 1090, 29),
    ("MI300X", "Meta-Llama-3-8B", (5.9, 7.8, 9.8, 13.9), 15800, 91),
]


@pytest.mark.parametrize(
    ("gpu", "model", "steps_ms", "plateau", "half"), STEP_TABLE, ids=lambda v: str(v)[:16]
)
def test_decode_steps_by_gpu(gpu, model, steps_ms, plateau, half) -> None:
    shape = geometry(model)
    per_token = kv_layout(shape).bytes_per_token
    step = roofline(Machine(best(gpu), shape.weight_bytes, shape.params, per_token), 2048, 0.0)
    for batch, expected in zip((1, 32, 64, 128), steps_ms, strict=False):
        assert step.at(batch) * 1e3 == pytest.approx(expected, rel=0.02)
    assert 1 / step.slope.value == pytest.approx(plateau, rel=0.03)
    assert step.fixed.value / step.slope.value == pytest.approx(half, rel=0.05)


def test_residence_time() -> None:
    # U = 0.51 leaves 219,841 of 448,656 tokens.
    found = residence(448_656, 0.51, 4300, 774, 3100)
    assert found.high_s == pytest.approx(43.3, abs=0.05)
    assert found.low_s == pytest.approx(26.9, abs=0.05)
    assert found.point_s == pytest.approx(39.9, abs=0.05)
    assert residence(448_656, 1.0, 4300, 774, 3100).point_s == 0.0
    assert residence(448_656, 0.0, 0, 0, 0).point_s == float("inf")


def test_sessions_the_pool_keeps() -> None:
    # 448,656 tokens, 400 shared; 2,436 per session, 406 written in a turn of 6 s every 66 s.
    chat = Session(private=2436, written=406, held_s=6)
    assert sessions_kept(448_656, 400, chat, 60) == pytest.approx(
        448_256 / (2436 + 369.1), rel=1e-4
    )
    # The block-exact runs keep 174 at 90 % of the plateau: the rule of thumb is a little low.
    assert sessions_kept(448_656, 400, chat, 60) == pytest.approx(174, rel=0.10)
    assert sessions_kept(300, 400, chat, 60) == 0.0


def test_lines_and_step_times_are_fitted() -> None:
    line = fit_line([1, 2, 3, 4], [3, 5, 7, 9])
    assert (line.intercept, line.slope) == (pytest.approx(1), pytest.approx(2))
    assert fit_line([1, 1, 1], [1, 2, 3]) is None
    assert fit_line([1, 2], [1, 2]) is None
    running = [4, 8, 12, 16, 20, 24, 28, 32]
    step = fitted(running, [0.010 + 0.0005 * value for value in running])
    assert step.fixed.value == pytest.approx(0.010)
    assert step.slope.value == pytest.approx(0.0005)
    assert fitted(running, [0.02] * 8) is None
    assert fitted([10] * 8, [0.02] * 8) is None
    assert fitted(running[:4], [0.02, 0.03, 0.04, 0.05]) is None


def test_heavy_tails_lower_the_safe_batch() -> None:
    assert heavy_tailed(1.3, None)
    assert heavy_tailed(0.5, 9.0)
    assert not heavy_tailed(0.5, 4.0)
    even = [700.0] * 100
    tailed = [350.0] * 95 + [7350.0] * 5
    assert sum(even) == sum(tailed)
    plain = resampled_safe_batch(448_656, 1638, even, 20.0)
    heavy = resampled_safe_batch(448_656, 1638, tailed, 20.0)
    assert plain == 638
    assert heavy < plain - 50
