"""GPU, model and lengths → the batch ceiling of a server that is not there, in plain numbers.

This is what `forensics ceiling` computes without logs and what runbook checks compare written
settings with. Nothing here needs frames or arrays. The steps of one computation are kept together.
"""

from dataclasses import dataclass, replace
from math import floor, hypot, inf, sqrt

from forensics.capacity.bounds import (
    Interval,
    Quantity,
    Reckoned,
    formula_bound,
    safe_bound,
)
from forensics.capacity.demand import DEFAULT_CV, Demand, demand_of
from forensics.capacity.kv_layout import KvLayout, kv_layout
from forensics.capacity.plan_sessions import session_bound, sessions_of, with_lost_hits
from forensics.capacity.pool import Pool, reckoned_pool, stated_pool
from forensics.capacity.reuse_model import Cliff, StepCost, Workload
from forensics.capacity.step_time import Machine, StepTime, knee_bound, roofline, slo_bound
from forensics.capacity.wanted import Wanted, workload_of
from forensics.catalog.defaults import default_gpu_memory_utilization
from forensics.catalog.gpus import GIB, GpuSpec, identify
from forensics.catalog.messages import Message
from forensics.catalog.model_geometry import ModelGeometry
from forensics.catalog.models import geometry

USUAL_RESIDENCE_S = 20.0
"""W where no step time is known: enters only the horizon's quantile (z = 3.45)."""
MEMORY_FIRST = 0.25
"""Below this share of the throughput knee, memory is the ceiling rather than compute."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A ceiling in plain numbers.

    Attributes:
        limit: recommended max_num_seqs with its interval; None when refused.
        binding: name of the bound that decided.
        bounds: all bounds computed.
        sessions: C_keep with its interval; None when not asked or not identified.
        keep: the load at which hits fall to 90 % of their plateau.
        gap_table: (gap in seconds, live sessions) when turns are known and think time is not.
        pool: in tokens.
        gpu / gpus: the likeliest accelerator, and all that fit the name.
        model / layout / step / cost / workload: what it was computed from.
        refused: why there is no limit.
        notes: what belongs to the answer.
    """

    limit: Interval | None
    binding: str | None
    bounds: tuple[Reckoned, ...]
    sessions: Interval | None = None
    keep: Cliff | None = None
    gap_table: tuple[tuple[float, float], ...] = ()
    pool: Pool | None = None
    gpu: GpuSpec | None = None
    gpus: tuple[GpuSpec, ...] = ()
    model: ModelGeometry | None = None
    layout: KvLayout | None = None
    step: StepTime | None = None
    cost: StepCost | None = None
    workload: Workload | None = None
    refused: Message | None = None
    notes: tuple[Message, ...] = ()


def ceiling_for(wanted: Wanted) -> Plan:
    """Work out the ceiling of what is asked for.

    >>> plan = ceiling_for(Wanted("A100-80GB", "meta-llama/Meta-Llama-3-8B", 2048, 512,
    ...                           shared_prefix=1638, slo_itl_s=0.05, utilization=0.9))
    >>> plan.limit.value, plan.binding
    (135, 'B_slo')
    """
    notes: list[Message] = []
    gpus = identify(wanted.gpu) if wanted.gpu else ()
    gpu = gpus[0] if gpus else None
    if wanted.gpu and gpu is None:
        notes.append(Message("ceiling.note.gpu_not_in_table", {"gpu": wanted.gpu}))
    model = wanted.model if isinstance(wanted.model, ModelGeometry) else geometry(wanted.model)
    made = _layout(wanted, model)
    layout = made if isinstance(made, KvLayout) else None
    pool = _pool(wanted, gpu, model, layout)
    workload = workload_of(wanted, notes)
    base = Plan(
        None,
        None,
        (),
        gpu=gpu,
        gpus=gpus,
        model=model,
        layout=layout,
        workload=workload,
        notes=tuple(notes),
    )
    if not isinstance(pool, Pool):
        return replace(base, refused=made if isinstance(made, Message) else pool)
    if not pool.stated:
        values = {"low": pool.low, "high": pool.high}
        notes.append(Message("ceiling.note.reckoned_pool", values))
    demand = _demand(workload, layout, pool)
    step, cost = _step(wanted, gpu, model, layout, workload)
    bounds = _bounds(wanted, pool, demand, step, workload, layout)
    if cost is not None:
        bounds = [with_lost_hits(bound, wanted, pool, workload, cost) for bound in bounds]
    chosen = [
        bound for bound in bounds if bound.name in ("B_safe", "B_slo", "B_90", "engine_limit")
    ]
    binding = min(chosen, key=lambda bound: bound.value)
    value = max(1, floor(binding.value))
    limit = Interval(
        value,
        min(value, max(1, floor(min(bound.low for bound in chosen)))),
        max(value, floor(min(bound.high for bound in chosen))),
    )
    keep, sessions, table = sessions_of(wanted, pool, workload, cost)
    whole = workload.prompt + workload.output
    if (layout.equivalent_tokens(whole) if layout else whole) > pool.tokens:
        notes.append(Message("ceiling.note.one_does_not_fit", {}))
    _explain(wanted, bounds, step, keep, workload, notes)
    return replace(
        base,
        limit=limit,
        binding=binding.name,
        bounds=tuple(bounds) + session_bound(pool, keep, sessions),
        sessions=sessions,
        keep=keep,
        gap_table=table,
        pool=pool,
        step=step,
        cost=cost,
        notes=tuple(notes),
    )


def _layout(wanted: Wanted, model: ModelGeometry | None) -> KvLayout | Message:
    if model is None:
        if not isinstance(wanted.model, str) or not wanted.model:
            return Message("ceiling.refused.no_model", {})
        return Message("ceiling.refused.model", {"model": wanted.model})
    return kv_layout(
        model,
        tensor_parallel=wanted.tensor_parallel,
        pipeline_parallel=wanted.pipeline_parallel,
        kv_dtype=wanted.kv_dtype,
        dtype=wanted.dtype,
        block_size=wanted.block_size,
        version=wanted.version,
        draft_layers=wanted.draft_layers,
    )


def _pool(
    wanted: Wanted, gpu: GpuSpec | None, model: ModelGeometry | None, layout: KvLayout | None
) -> Pool | Message:
    told = stated_pool(wanted.pool_tokens, None, wanted.block_size, "given")
    if told is not None:
        return told
    memory = wanted.memory_gib or (gpu.cuda_gib if gpu else None)
    if memory is None and wanted.gpu:
        return Message("ceiling.refused.gpu_not_in_table", {"gpu": wanted.gpu})
    if memory is None or model is None or layout is None:
        return Message("ceiling.refused.gpu", {})
    share = wanted.utilization
    if share is None:
        # Without a release the newest one is meant: 0.92 since 0.20.0.
        share = default_gpu_memory_utilization(wanted.version or (999, 0, 0))
    made = reckoned_pool(
        memory,
        share,
        model.weight_bytes,
        layout,
        tensor_parallel=wanted.tensor_parallel,
        pipeline_parallel=wanted.pipeline_parallel,
    )
    if made is not None:
        return made
    return Message(
        "ceiling.refused.no_room",
        {"model": model.name, "weights": model.weight_bytes / GIB, "memory": memory},
    )


def _demand(workload: Workload, layout: KvLayout | None, pool: Pool) -> Demand:
    made = demand_of(workload.fresh, workload.output, relative_error=0.05)
    # Sliding layers stop growing: scale by what a whole request really takes.
    whole = workload.prompt + workload.output
    factor = _windowed(layout, whole) / whole if layout is not None else 1.0
    mean = (workload.history + made.mean) * factor
    # A prefix takes what its own length takes in the windows, however long the request grows.
    prefix = workload.shared_held(1.0)
    inside = _windowed(layout, prefix) / prefix if layout is not None and prefix else 1.0
    shared = _shared_live(workload, pool.tokens, mean, inside)
    steps = made.steps
    deviation = made.deviation
    if workload.history:
        # Turns before a random turn of a geometric session: mean n - 1, variance n (n - 1).
        turn = workload.fresh + workload.output
        spread = turn * sqrt(workload.turns * (workload.turns - 1))
        deviation = hypot(deviation, spread)
        text = f"m = {workload.history:,.0f} of history + {made.mean:,.0f} = {mean:,.0f} tokens"
        steps = (*steps, text if factor == 1.0 else f"{text} (windows full)")
    return Demand(
        mean,
        deviation * factor,
        shared,
        (workload.history + made.mean_low) * factor,
        (workload.history + made.mean_high) * factor,
        steps,
    )


def _windowed(layout: KvLayout, tokens: float) -> float:
    """Return the tokens a request really takes, without the steps of whole blocks.

    Requests end anywhere in a block; steps would make a longer request look smaller than a shorter.
    """
    lower = tokens // layout.block_size * layout.block_size
    part = (tokens - lower) / layout.block_size
    least, most = (
        layout.equivalent_tokens(edge) if edge else 0.0
        for edge in (lower, lower + layout.block_size)
    )
    return least + part * (most - least)


def _shared_live(workload: Workload, pool: float, mean: float, factor: float) -> float:
    """Return S_live: the distinct shared tokens a full running set references."""
    batch = pool / max(1.0, mean)
    held = 0.0
    for _ in range(60):
        held = workload.shared_held(batch) * factor
        batch = (batch + max(0.0, pool - held) / max(1.0, mean)) / 2
    return held


def _step(
    wanted: Wanted,
    gpu: GpuSpec | None,
    model: ModelGeometry | None,
    layout: KvLayout | None,
    workload: Workload,
) -> tuple[StepTime | None, StepCost | None]:
    if gpu is None or model is None or layout is None or not model.params:
        return None, None
    machine = Machine(
        gpu,
        model.active_params * model.bytes_per_param,
        model.active_params,
        layout.bytes_per_token,
        wanted.tensor_parallel,
    )
    context = workload.prompt + workload.output * (1 + DEFAULT_CV**2) / 2
    # Sessions and shared prefixes are taken as hit: what a turn computes is its fresh part.
    computed = workload.fresh / workload.output
    return roofline(machine, layout.equivalent_tokens(context), computed), machine.cost


def _bounds(
    wanted: Wanted,
    pool: Pool,
    demand: Demand,
    step: StepTime | None,
    workload: Workload,
    layout: KvLayout | None,
) -> list[Reckoned]:
    size = Interval(pool.tokens, pool.low, pool.high)
    held = USUAL_RESIDENCE_S
    grows = layout is None or layout.full_groups > 0
    if step is not None and grows:
        # Where every layer slides, a longer request holds no more blocks, only for longer, and that
        # must not lower the quantile. Elsewhere the time in the batch enters it.
        batch = pool.tokens / max(1.0, demand.mean)
        held = workload.output * step.at(batch)
    safe, end = safe_bound(size, pool.source, demand, held, "given lengths")
    if pool.steps:
        safe = replace(safe, steps=(*pool.steps, *safe.steps))
    bounds = [safe, end]
    if step is not None:
        if wanted.slo_itl_s is not None:
            bounds.append(slo_bound(step, wanted.slo_itl_s, "operator"))
        bounds.append(knee_bound(step))
    reserve = workload.shared * wanted.keep_generations
    reserve_source = f"shared prefix x {wanted.keep_generations} generations"
    if wanted.reserve_gib is not None and layout is not None:
        reserve = wanted.reserve_gib * GIB / layout.bytes_per_token
        reserve_source = f"{wanted.reserve_gib:g} GiB, operator"
    length = workload.prompt + workload.output
    bounds.append(
        formula_bound(
            size, pool.source, Interval.exact(length), reserve, ("prompt + output", reserve_source)
        )
    )
    if wanted.max_num_batched_tokens:
        value = float(wanted.max_num_batched_tokens)
        bounds.append(
            Reckoned(
                "engine_limit",
                value,
                value,
                value,
                "max_num_batched_tokens >= running requests",
                {"max_num_batched_tokens": Quantity(value, "tokens", "operator")},
                (f"a step serves each running request at least one token: {value:,.0f}",),
            )
        )
    return bounds


def _explain(
    wanted: Wanted,
    bounds: list[Reckoned],
    step: StepTime | None,
    keep: Cliff | None,
    workload: Workload,
    notes: list[Message],
) -> None:
    by_name = {bound.name: bound for bound in bounds}
    knee = by_name["B_90"].value if "B_90" in by_name else inf
    if step is None:
        notes.append(Message("ceiling.note.no_roofline", {}))
    elif by_name["B_safe"].value < MEMORY_FIRST * knee:
        notes.append(Message("ceiling.note.memory_first", {"plateau": knee}))
    if wanted.slo_itl_s is None:
        notes.append(Message("ceiling.note.no_target", {}))
    elif "B_slo" in by_name and by_name["B_slo"].value < 1:
        notes.append(Message("ceiling.note.target_too_low", {"target": wanted.slo_itl_s}))
    if wanted.slo_ttft_s is not None:
        values = {"target": wanted.slo_ttft_s}
        notes.append(Message("ceiling.note.ttft_needs_admission", values))
    if keep is not None and keep.exhaustion:
        notes.append(Message("ceiling.note.exhaustion_first", {}))
    elif workload.turns > 1:
        notes.append(Message("ceiling.note.seqs_do_not_restore", {}))


__all__ = ["Plan", "Wanted", "ceiling_for"]
