"""The recommendation on made timelines whose answer is known by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from forensics.catalog.messages import Message, render
from forensics.ceiling import recommend
from forensics.config import Options
from forensics.diary import EngineDiary, Epoch, Gpu, KvPool, Stated, Version
from forensics.evidence import Place
from forensics.reports.views import ceiling as ceiling_view
from forensics.timeline import SIGNALS, EngineTimeline, Histogram, Origin
from forensics.verdict import Verdict

POOL = 448_656
EPOCH = Epoch(
    start=0.0,
    end=None,
    version=Version(0, 32, 0),
    generation="V1",
    model=Stated("meta-llama/Llama-3.1-8B-Instruct", Place(0, 10)),
    gpu=Gpu("NVIDIA A100-SXM4-80GB", ("NVIDIA A100-SXM4-80GB",), None, "DCGM", None),
    pool=KvPool(POOL, POOL // 16, 16, None, "log", Place(0, 20)),
    max_num_seqs=1024,
    max_model_len=16384,
    prefix_caching=True,
)


def timeline(epoch=EPOCH, step=15.0, histograms=None, **signals):
    """Build a timeline of equal steps from signals given as arrays; the rest was not observed."""
    count = max(len(values) for values in signals.values())
    columns = {"time": step * np.arange(1, count + 1), "elapsed_s": np.full(count, step)}
    for name in SIGNALS:
        values = signals.get(name)
        columns[name] = (
            np.full(count, np.nan) if values is None else np.asarray(values, dtype=float)
        )
    grid = pl.DataFrame(columns).with_columns(pl.all().fill_nan(None))
    origins = {name: Origin("metrics", 1, f"vllm:{name}") for name in signals}
    return EngineTimeline(
        engine="0",
        instance=None,
        step_s=step,
        grid=grid,
        log_grid=grid,
        origins=origins,
        marks=(),
        diary=EngineDiary("0", None, None, (epoch,)),
        histograms=histograms or {},
    )


def verdict(cause):
    return Verdict(cause, 0.9, "0", None, None, Message("x"))


def traffic(running, shared=1638.0, private=730.0, **more):
    """Requests of 2,048 prompt and 512 output tokens that share 1,638; 12 ms + 0.28 ms per one."""
    running = np.asarray(running, dtype=float)
    latency = 0.0119 + 0.000283 * running
    finished = 15.0 * running / (512 * latency)
    return {
        "running": running,
        "waiting": np.zeros(running.size),
        "kv_usage": np.minimum(1.0, (shared + private * running) / POOL),
        "itl_s": latency,
        "finished": finished,
        "prompt_len": np.full(running.size, 2048.0),
        "output_len": np.full(running.size, 512.0),
        "prompt_tokens": finished * 2048,
        "computed_tokens": finished * 410,
        "cached_tokens": finished * 1638,
        "generation_tokens": finished * 512,
        "hit_rate": np.full(running.size, 0.8),
        "hit_weight": finished * 2048,
        "preemptions": np.zeros(running.size),
        "e2e_s": 512 * latency,
        "queue_s": np.zeros(running.size),
    } | more


RAMP = np.tile(np.linspace(60, 300, 40), 4)


def bounds(ceiling):
    return {bound.name: bound for bound in ceiling.bounds}


def keys(ceiling):
    for note in ceiling.notes:
        assert render(note, "en")
        assert render(note, "ko")
    return {note.key.removeprefix("ceiling.note.") for note in ceiling.notes}


def test_demand_and_sharing_come_from_the_slope_of_usage_on_running() -> None:
    found = bounds(recommend(timeline(**traffic(RAMP)), EPOCH, None, Options(slo_itl_s=0.05)))
    assert found["B_exh"].value == pytest.approx(612, abs=1)
    assert found["B_safe"].inputs["m"].value == pytest.approx(730)
    assert found["B_safe"].inputs["S_live"].value == pytest.approx(1638, rel=0.01)
    assert found["B_safe"].inputs["m"].place.series == "vllm:kv_usage"
    assert found["B_slo"].value == pytest.approx(135, abs=1)
    assert found["B_slo"].inputs["t0"].source == "measured"
    assert found["B_90"].value == pytest.approx(378, abs=2)
    assert found["observed"].value == 300
    assert found["formula"].value == pytest.approx(POOL / 2560)


def test_the_smallest_bound_binds_and_is_named() -> None:
    plain = recommend(timeline(**traffic(RAMP)), EPOCH, None, Options())
    assert (plain.max_num_seqs.value, plain.binding_bound) == (378, "B_90")
    target = recommend(timeline(**traffic(RAMP)), EPOCH, None, Options(slo_itl_s=0.05))
    assert (target.max_num_seqs.value, target.binding_bound) == (134, "B_slo")
    assert target.max_num_seqs.low <= 134 <= target.max_num_seqs.high
    assert target.current == 1024
    assert target.gpu == "NVIDIA A100-SXM4-80GB"


def test_preemption_is_stopped_but_hits_are_not_promised() -> None:
    running = np.concatenate((RAMP, np.linspace(560, 613, 20)))
    lost = np.concatenate((np.zeros(RAMP.size), np.full(20, 30.0)))
    made = timeline(**traffic(running, preemptions=lost))
    epoch = replace(EPOCH, max_num_seqs=900)
    found = recommend(made, epoch, verdict("preemption-cliff"), Options())
    assert found.max_num_seqs.value < 612
    assert {"stops_preemption", "seqs_do_not_restore"} <= keys(found)
    assert "no_change" not in keys(found)
    said = render(next(n for n in found.notes if n.key.endswith("stops_preemption")))
    assert "the hit rate stays as it is" in said


def test_no_change_when_the_setting_is_supported() -> None:
    epoch = replace(EPOCH, max_num_seqs=375)
    found = recommend(timeline(**traffic(RAMP)), epoch, verdict("healthy"), Options())
    assert found.max_num_seqs.value == 375
    assert "no_change" in keys(found)
    # More seats than run now are not recommended while nothing is wrong.
    epoch = replace(EPOCH, max_num_seqs=64)
    found = recommend(timeline(**traffic(RAMP)), epoch, verdict("healthy"), Options())
    assert found.max_num_seqs.value == 64
    assert "no_change" in keys(found)


def test_seats_that_bind_are_raised() -> None:
    epoch = replace(EPOCH, max_num_seqs=64)
    found = recommend(timeline(**traffic(RAMP)), epoch, verdict("seat-limit"), Options())
    assert found.max_num_seqs.value == 378
    assert "raise" in keys(found)


@pytest.mark.parametrize("lost", [0.0, 3.0])
def test_seats_that_bind_are_raised_from_inside_the_interval_too(lost) -> None:
    # Step times that scatter by a tenth leave some 400 (290 to 520): an interval that holds 350.
    scattered = (0.0119 + 0.000283 * RAMP) * (1 + 0.1 * np.tile([1.0, -1.0], RAMP.size // 2))
    epoch = replace(EPOCH, max_num_seqs=350)
    preemptions = np.concatenate(([lost], np.zeros(RAMP.size - 1)))
    made = timeline(**traffic(RAMP, preemptions=preemptions, itl_s=scattered))
    found = recommend(made, epoch, verdict("seat-limit"), Options())
    assert found.max_num_seqs.low == pytest.approx(293, abs=5)
    assert found.max_num_seqs.value == pytest.approx(401, abs=5)
    assert found.binding_bound == "B_90"
    assert "raise" in keys(found)
    assert not found.no_change
    assert not ceiling_view(found).no_change
    assert {"no_change", "stops_preemption"}.isdisjoint(keys(found))
    calm = timeline(**traffic(RAMP, itl_s=scattered))
    stays = recommend(calm, epoch, verdict("healthy"), Options())
    assert stays.no_change
    assert ceiling_view(stays).no_change


def test_a_setting_below_the_bound_is_not_said_to_stop_preemption() -> None:
    lost = np.concatenate(([3.0], np.zeros(RAMP.size - 1)))
    epoch = replace(EPOCH, max_num_seqs=64)
    made = timeline(**traffic(RAMP, preemptions=lost))
    found = recommend(made, epoch, verdict("preemption-thrash"), Options())
    assert found.max_num_seqs.value == 64
    assert "stops_preemption" not in keys(found)


def test_an_unknown_gpu_and_pool_still_give_a_pool_based_ceiling() -> None:
    bare = replace(EPOCH, gpu=Gpu(), pool=KvPool(), model=None)
    signals = traffic(RAMP)
    kept = ("running", "kv_usage", "preemptions", "waiting")
    made = timeline(bare, **{name: signals[name] for name in kept})
    found = recommend(made, bare, None, Options())
    assert found.gpu is None
    assert bounds(found)["B_exh"].value == pytest.approx(612, abs=1)
    assert found.binding_bound == "B_safe"
    assert 500 < found.max_num_seqs.value < 612
    assert "gpu_unknown" in keys(found)
    assert found.confidence == "low"


def test_a_steady_batch_charges_all_usage_to_requests_and_says_so() -> None:
    found = recommend(timeline(**traffic(np.full(60, 100.0))), EPOCH, None, Options())
    assert "low_sharing" in keys(found)
    assert found.confidence == "low"
    demand = bounds(found)["B_exh"].inputs["m"]
    assert demand.value == pytest.approx((1638 + 73_000) / 100)
    assert demand.source == "mean usage per running request"


def test_candidates_that_differ_are_each_answered() -> None:
    names = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3")
    epoch = replace(EPOCH, gpu=Gpu(None, names, 84_900_000_000, "memory line"))
    made = timeline(epoch, **traffic(np.full(60, 100.0)))
    found = recommend(made, epoch, None, Options(slo_itl_s=0.05))
    assert found.gpu == "NVIDIA A100-SXM4-80GB or NVIDIA H100 80GB HBM3"
    other = next(note for note in found.notes if note.key.endswith("for_candidate"))
    assert other.values["gpu"] == "NVIDIA H100 80GB HBM3"
    assert other.values["batch"] > found.max_num_seqs.value
    assert "gpu_candidates" in keys(found)


def test_what_the_operator_says_wins() -> None:
    made = timeline(**traffic(np.full(60, 100.0)))
    found = recommend(made, EPOCH, None, Options(gpu="L4", slo_itl_s=0.2))
    assert found.gpu == "NVIDIA L4"
    odd = recommend(made, EPOCH, None, Options(gpu="Z9000"))
    assert "gpu_not_in_table" in keys(odd)
    assert odd.gpu == "NVIDIA A100-SXM4-80GB"


def test_an_impossible_gpu_is_said_to_be_so() -> None:
    epoch = replace(EPOCH, gpu=Gpu(None, (), 85_094_000_000, "memory line"))
    made = timeline(epoch, **traffic(RAMP))
    assert "gpu_impossible" in keys(recommend(made, epoch, None, Options(gpu="L4")))
    assert "gpu_impossible" not in keys(recommend(made, epoch, None, Options(gpu="A100-80GB")))


def test_known_reuse_gaps_give_an_admission_limit() -> None:
    edges = np.array([1.0, 5.0, 10.0, 20.0, np.inf])
    times = 15.0 * np.arange(1, RAMP.size + 1)
    counts = np.tile([2.0, 10.0, 20.0, 20.0, 20.0], (RAMP.size, 1))
    gaps = {"block_reuse_s": Histogram(edges, times, counts, "vllm:kv_block_reuse_gap_seconds")}
    made = timeline(histograms=gaps, **traffic(np.tile(np.linspace(10, 60, 40), 4)))
    found = recommend(made, EPOCH, verdict("eviction-pressure"), Options())
    kept = bounds(found)["C_keep"]
    assert kept.applies_to == "live"
    assert kept.inputs["g"].source.startswith("reuse-gap histogram")
    assert found.admission_limit.low < found.admission_limit.value < found.admission_limit.high
    assert found.gap_table == ()
    assert {"admission", "seqs_do_not_restore"} <= keys(found)
    assert found.confidence == "high"


def test_an_unknown_gap_gives_a_table_and_no_number() -> None:
    found = recommend(timeline(**traffic(RAMP)), EPOCH, None, Options())
    assert found.admission_limit is None
    assert bounds(found)["C_keep"].refused.key == "ceiling.refused.gap_unknown"
    assert [row.gap_s for row in found.gap_table] == [5, 15, 60, 300]
    clients = [row.clients for row in found.gap_table]
    assert clients == sorted(clients, reverse=True)
    assert "gap_unknown" in keys(found)


def test_without_reuse_the_cache_is_not_the_lever() -> None:
    made = timeline(**traffic(RAMP, hit_rate=np.full(RAMP.size, 0.03)))
    found = recommend(made, EPOCH, verdict("low-reuse-workload"), Options())
    assert "no_reuse" in keys(found)
    assert "C_keep" not in bounds(found)
    assert found.gap_table == ()


def test_nothing_observed_is_refused_with_a_reason() -> None:
    made = timeline(running=np.full(10, np.nan))
    found = recommend(made, replace(EPOCH, pool=KvPool(), gpu=Gpu()), None, Options())
    assert found.max_num_seqs is None
    assert found.refused.key == "ceiling.refused.gpu"
    assert bounds(found)["B_safe"].refused is not None


def test_hybrid_models_stand_on_the_engines_own_figures() -> None:
    epoch = replace(
        EPOCH,
        model=Stated("Qwen/Qwen3-Next-80B-A3B-Instruct", None),
        pool=KvPool(None, None, None, 37.5, "log", None),
        max_num_batched_tokens=256,
    )
    found = recommend(timeline(epoch, **traffic(RAMP)), epoch, None, Options())
    assert bounds(found)["max_concurrency"].value == 37.5
    assert bounds(found)["B_exh"].value == pytest.approx(612, abs=1)
    assert found.binding_bound == "engine_limit"
    assert found.max_num_seqs.value == 256


def test_heavy_tails_are_resampled() -> None:
    edges = np.array([100.0, 1000.0, 10_000.0, 50_000.0, np.inf])
    times = 15.0 * np.arange(1, RAMP.size + 1)
    prompts = np.tile([60.0, 90.0, 95.0, 100.0, 100.0], (RAMP.size, 1))
    outputs = np.tile([5.0, 95.0, 100.0, 100.0, 100.0], (RAMP.size, 1))
    histograms = {
        "prompt_len": Histogram(edges, times, prompts, "vllm:request_prompt_tokens"),
        "output_len": Histogram(edges, times, outputs, "vllm:request_generation_tokens"),
    }
    tailed = recommend(timeline(histograms=histograms, **traffic(RAMP)), EPOCH, None, Options())
    plain = recommend(timeline(**traffic(RAMP)), EPOCH, None, Options())
    assert bounds(tailed)["B_safe"].value < 0.9 * bounds(plain)["B_safe"].value
    assert "heavy-tailed" in bounds(tailed)["B_safe"].steps[-1]


def test_a_first_token_target_is_told_to_need_admission() -> None:
    found = recommend(timeline(**traffic(RAMP)), EPOCH, None, Options(slo_ttft_s=2.0))
    assert "ttft_needs_admission" in keys(found)


def test_the_epoch_bounds_what_is_measured() -> None:
    running = np.concatenate((np.full(60, 500.0), RAMP))
    lost = np.concatenate((np.full(60, 9.0), np.zeros(RAMP.size)))
    epoch = replace(EPOCH, start=60 * 15.0 + 1)
    found = recommend(timeline(epoch, **traffic(running, preemptions=lost)), epoch, None, Options())
    assert bounds(found)["observed"].value == 300
    assert "stops_preemption" not in keys(found)
