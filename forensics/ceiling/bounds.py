"""Measured quantities and target → the ceiling's bounds, each with formula, inputs and sources."""

from forensics.capacity.bounds import (
    Interval,
    Reckoned,
    formula_bound,
    memory_bound,
    safe_bound,
)
from forensics.capacity.demand import DEFAULT_CV, Demand, demand_of
from forensics.capacity.step_time import Machine, StepTime, fitted, knee_bound, roofline, slo_bound
from forensics.catalog.gpus import GpuSpec
from forensics.catalog.messages import Message
from forensics.ceiling.measure import Measured
from forensics.ceiling.records import Bound, Input
from forensics.ceiling.tails import resampled, tailed
from forensics.ceiling.target import Target
from forensics.evidence import Place

MEANS_ERROR = 0.2
"""Relative error of a demand that stands on means alone."""
USUAL_RESIDENCE_S = 20.0
"""W where nothing measured it: enters only the horizon's quantile (z = 3.45)."""


def to_bound(reckoned: Reckoned, places: dict[str, Place | None] | None = None) -> Bound:
    """Give a reckoned bound the form of the result, with the places of its inputs."""
    at = places or {}
    return Bound(
        name=reckoned.name,
        value=reckoned.value,
        low=reckoned.low,
        high=reckoned.high,
        formula=reckoned.formula,
        inputs={
            name: Input(q.value, q.unit, q.source, at.get(name))
            for name, q in reckoned.inputs.items()
        },
        steps=reckoned.steps,
        applies_to=reckoned.applies_to,
    )


def refused_bound(name: str, formula: str, reason: Message, applies_to: str = "running") -> Bound:
    """Give a bound that was not computed, and why."""
    return Bound(name, None, None, None, formula, applies_to=applies_to, refused=reason)


def pool_units(target: Target) -> tuple[Interval, str]:
    """Return N with its interval and source; without any figure the pool itself is the unit."""
    if target.pool is None:
        return Interval.exact(1.0), "the pool itself (no size was stated)"
    pool = target.pool
    return Interval(pool.tokens, pool.low, pool.high), pool.source


def demand(measured: Measured, target: Target) -> tuple[Demand, str] | None:
    """Return what a running request holds, and how it was learnt; None when nothing tells.

    Preferred is the regression of usage on running requests, which needs to know neither sharing
    nor lengths; then the mean usage per running request (all of it charged to requests); then
    lengths alone.
    """
    pool, _ = pool_units(target)
    spread = _relative_deviation(measured)
    line = measured.usage_line
    if line is not None:
        mean = line.slope * pool.value
        error = max(0.03, 2 * line.slope_error / line.slope)
        shared = line.intercept * pool.value
        step = (
            f"usage x N = {_tokens(shared)} + {_tokens(mean)} x running"
            f" over {line.points} scrapes -> S_live = {_tokens(shared)}, m = {_tokens(mean)}"
        )
        return (
            Demand(mean, spread * mean, shared, mean * (1 - error), mean * (1 + error), (step,)),
            "regression of usage on running",
        )
    if measured.usage and measured.running:
        mean = measured.usage * pool.value / measured.running
        step = (
            f"m <= usage x N / running = {measured.usage:.3g} x {_tokens(pool.value)}"
            f" / {measured.running:.3g} = {_tokens(mean)} (all usage charged to requests)"
        )
        return (
            Demand(
                mean,
                spread * mean,
                0.0,
                mean * (1 - MEANS_ERROR),
                mean * (1 + MEANS_ERROR),
                (step,),
            ),
            "mean usage per running request",
        )
    if target.pool is not None and measured.prompt and measured.output:
        made = demand_of(
            measured.prompt.mean,
            measured.output.mean,
            unshared_cv=measured.prompt.cv or DEFAULT_CV,
            output_cv=measured.output.cv or DEFAULT_CV,
        )
        return made, "mean lengths, sharing unknown"
    return None


def pool_bounds(measured: Measured, target: Target) -> list[Bound]:
    """Return B_safe and B_exh, and the field's formula for comparison."""
    found = demand(measured, target)
    refusal = target.pool_refused or Message("ceiling.refused.no_demand", {})
    if found is None:
        return [
            refused_bound("B_safe", "B m + z s sqrt(B) = N - S_live", refusal),
            refused_bound("B_exh", "(N - S_live) / m", refusal),
        ]
    per_request, how = found
    pool, source = pool_units(target)
    held = measured.residence_s or USUAL_RESIDENCE_S
    places = {"m": measured.places.get("kv_usage"), "S_live": measured.places.get("kv_usage")}
    told = "end to end minus queue, or running / rate" if measured.residence_s else "usual"
    safe, end = safe_bound(pool, source, per_request, held, how, residence_source=told)
    if tailed(measured.prompt) or tailed(measured.output):
        safe = resampled(safe, pool, per_request, measured, held)
    bounds = [to_bound(safe, places), to_bound(end, places)]
    if target.pool is not None and measured.prompt and measured.output:
        length = Interval.within(measured.prompt.mean + measured.output.mean, 0.05)
        bounds.append(
            to_bound(
                formula_bound(
                    pool, source, length, 0.0, ("mean prompt + output", "no prefixes kept")
                )
            )
        )
        in_bytes = memory_formula(length, target)
        if in_bytes is not None:
            bounds.append(in_bytes)
    return bounds


def memory_formula(length: Interval, target: Target) -> Bound | None:
    """Return the field's formula on bytes; None where memory or layout do not allow it."""
    budget, layout = target.budget, target.layout
    if budget is None or layout is None or layout.window_groups or layout.bytes_per_token <= 0:
        return None
    kept, error = budget.kept_gib, budget.kept_error_gib
    return to_bound(
        memory_bound(
            Interval(budget.free_gib, budget.free_gib, budget.free_gib),
            Interval(kept, max(0.0, kept - error), kept + error),
            length,
            (layout.bytes_per_token, layout.formula),
            (budget.free_source, budget.kept_source, "mean prompt + output"),
        )
    )


def step_time(measured: Measured, target: Target, gpu: GpuSpec | None) -> StepTime | None:
    """Return the step time: fitted to measured pairs, else the roofline of the data sheet."""
    fit = fitted(
        [pair[0] for pair in measured.latency_pairs], [pair[1] for pair in measured.latency_pairs]
    )
    if fit is not None:
        return fit
    if gpu is None or target.model is None or target.layout is None:
        return None
    prompt = measured.prompt.mean if measured.prompt else 0.0
    output = measured.output.mean if measured.output else 0.0
    if not prompt or not output:
        return None
    computed = prompt * (1 - (measured.hit_rate or 0.0))
    machine = Machine(
        gpu,
        target.model.active_params * target.model.bytes_per_param,
        target.model.active_params,
        target.layout.bytes_per_token,
        max(1, target.ranks),
    )
    return roofline(machine, prompt + output / 2, computed / output)


def latency_bounds(step: StepTime | None, slo_itl_s: float | None) -> list[Bound]:
    """Return B_slo where there is a target, and the throughput knee."""
    if step is None:
        reason = Message("ceiling.refused.no_step_time", {})
        bounds = [refused_bound("B_90", "9 t0 / slope", reason)]
        if slo_itl_s is not None:
            bounds.insert(0, refused_bound("B_slo", "(t_slo - t0) / slope", reason))
        return bounds
    bounds = [to_bound(knee_bound(step))]
    if slo_itl_s is not None:
        bounds.insert(0, to_bound(slo_bound(step, slo_itl_s, "operator")))
    return bounds


def observed_bound(measured: Measured) -> Bound | None:
    """Return the highest batch seen without preemption and with room in the pool."""
    if measured.clean_max is None or measured.clean_max < 1:
        return None
    return Bound(
        "observed",
        measured.clean_max,
        measured.clean_max,
        measured.running_max or measured.clean_max,
        "max running with no preemption and usage < 0.95",
        {
            "running": Input(
                measured.clean_max,
                "requests",
                "highest of the scrapes",
                measured.places.get("running"),
            )
        },
        (f"{measured.clean_max:,.0f} requests ran without preemption",),
    )


def engine_bounds(target: Target, batched_tokens: int | None) -> list[Bound]:
    """Return the engine's own limits: its concurrency figure, the step budget, hybrid blocks."""
    bounds: list[Bound] = []
    if target.concurrency is not None:
        factor, tokens = target.concurrency
        bounds.append(
            Bound(
                "max_concurrency",
                factor,
                factor,
                factor,
                "blocks / blocks of one request of max_model_len",
                {
                    "max_model_len": Input(tokens, "tokens", "stated by the server"),
                    "max_concurrency": Input(factor, "requests", "stated by the server"),
                },
                (f"the engine's own figure: {factor:g} requests of {tokens:,} tokens each",),
            )
        )
    limits: dict[str, float] = {}
    if batched_tokens:
        limits["max_num_batched_tokens"] = float(batched_tokens)
    blocks = target.pool.blocks if target.pool is not None else None
    if blocks and target.model is not None and target.model.linear_layers:
        # One state block per running request: the engine refuses max_num_seqs above the blocks.
        limits["cache blocks"] = float(blocks)
    if limits:
        name, value = min(limits.items(), key=lambda item: item[1])
        bounds.append(
            Bound(
                "engine_limit",
                value,
                value,
                value,
                f"{name} >= running requests",
                {name: Input(value, "requests", "stated by the server")},
                (f"a step serves each running request at least once: {name} = {value:,.0f}",),
            )
        )
    return bounds


def _tokens(value: float) -> str:
    # Without a pool size everything is a share of it, and shares need their digits.
    return f"{value:,.0f}" if value >= 10 else f"{value:.4g}"


def _relative_deviation(measured: Measured) -> float:
    if measured.prompt is None or measured.output is None:
        return DEFAULT_CV
    whole = demand_of(
        measured.prompt.mean,
        measured.output.mean,
        unshared_cv=measured.prompt.cv if measured.prompt.cv is not None else DEFAULT_CV,
        output_cv=measured.output.cv if measured.output.cv is not None else DEFAULT_CV,
    )
    return whole.deviation / whole.mean if whole.mean else DEFAULT_CV
