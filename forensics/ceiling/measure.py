"""One engine's timeline and epoch → the plain quantities the bounds are made of.

Everything here is an average over the time the epoch ran, in the symbols of docs/ceiling.md. What
was not observed is None; nothing is filled in.
"""

from dataclasses import dataclass

import numpy as np

from forensics.capacity.demand import Line, fit_line
from forensics.capacity.step_time import FIT_SPREAD
from forensics.config import Options
from forensics.diary import Epoch
from forensics.evidence import Place
from forensics.timeline import EngineTimeline

Series = np.ndarray

FIT_FROM = 5.0
"""Scrapes with fewer running requests say little about the demand of one."""
SATURATED = 0.95
"""From this usage on, demand is cut off by the pool."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """A length in tokens: mean, coefficient of variation, 99th percentile over mean, and a sample.

    `sample` holds equally likely values (quantiles of the histogram); empty without a histogram.
    """

    mean: float
    cv: float | None
    tail: float | None
    sample: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one engine in one epoch.

    Attributes:
        start / end: UTC seconds judged; `span_s` the time covered by scrapes.
        running / usage: means; `running_max` the largest.
        waiting: mean.
        clean_max: most requests seen running in a scrape without preemption and with room.
        finished: requests.
        requests_per_s: X.
        prompt / output: lengths.
        hit_rate: over the window; `best_hit_rate` its upper decile.
        computed_tps / generated_tps / cached_tps: tokens per second.
        residence_s: W, time a request holds blocks.
        preemptions: counted; None when nothing counts them.
        usage_line: usage against running (share of the pool per request); None without spread.
        latency_pairs: (running, inter-token latency) of quiet scrapes.
        places: where the main signals were read.
    """

    start: float
    end: float
    span_s: float
    running: float | None
    running_max: float | None
    usage: float | None
    waiting: float | None
    clean_max: float | None
    finished: float | None
    requests_per_s: float | None
    prompt: Lengths | None
    output: Lengths | None
    hit_rate: float | None
    best_hit_rate: float | None
    computed_tps: float | None
    generated_tps: float | None
    cached_tps: float | None
    residence_s: float | None
    preemptions: float | None
    usage_line: Line | None
    latency_pairs: tuple[tuple[float, float], ...]
    places: dict[str, Place | None]


def measure(timeline: EngineTimeline, epoch: Epoch, options: Options) -> Measured:
    """Measure one epoch of one engine."""
    grid = timeline.grid
    times = grid["time"].to_numpy()
    inside = np.ones(times.size, dtype=bool)
    for low in (epoch.start, options.since):
        inside &= times >= low if low is not None else True
    for high in (epoch.end, options.until):
        inside &= times <= high if high is not None else True
    if not inside.any():
        inside[:] = True

    def column(name: str) -> Series:
        return grid[name].cast(float).to_numpy()[inside]

    times = times[inside]
    elapsed = column("elapsed_s")
    running, usage, waiting = column("running"), column("kv_usage"), column("waiting")
    finished, preempted = column("finished"), column("preemptions")
    if not np.isfinite(preempted).any():
        preempted = column("preemption_lower_bound")
    quiet = ~(np.nan_to_num(preempted) > 0)
    seen = np.isfinite(running)
    span = float(np.nansum(elapsed[seen])) if seen.any() else float(np.nansum(elapsed))
    total = _sum(finished)
    per_s = total / span if total and span > 0 else None
    prompt = _lengths(timeline, "prompt_len", times, column("prompt_len"), finished)
    output = _lengths(timeline, "output_len", times, column("output_len"), finished)
    prompt_tokens, cached = column("prompt_tokens"), column("cached_tokens")
    computed, generated = column("computed_tokens"), column("generation_tokens")
    rate, weight = column("hit_rate"), column("hit_weight")
    hit = _weighted(rate, weight)
    prompt_tps = _per_second(prompt_tokens, span) or _mean(column("prompt_tps"))
    generated_tps = _per_second(generated, span) or _mean(column("generation_tps"))
    computed_tps = _per_second(computed, span)
    if computed_tps is None and prompt_tps is not None:
        computed_tps = prompt_tps * (1 - (hit or 0.0))
    cached_tps = _per_second(cached, span)
    if cached_tps is None and prompt_tps is not None and hit is not None:
        cached_tps = prompt_tps * hit
    mean_running = _mean(running)
    held = _held(column("e2e_s"), column("queue_s"), finished)
    if held is None and mean_running and per_s:
        held = mean_running / per_s
    clean = running[seen & quiet & ~(np.nan_to_num(usage) >= SATURATED)]
    known = rate[np.isfinite(rate) & (np.nan_to_num(weight, nan=1.0) > 0)]
    when = float(times[-1]) if times.size else 0.0
    return Measured(
        start=float(times[0]) if times.size else 0.0,
        end=when,
        span_s=span,
        running=mean_running,
        running_max=_max(running),
        usage=_mean(usage),
        waiting=_mean(waiting),
        clean_max=_max(clean),
        finished=total,
        requests_per_s=per_s,
        prompt=prompt or _mean_length(prompt_tokens, finished),
        output=output or _mean_length(generated, finished),
        hit_rate=hit,
        best_hit_rate=float(np.quantile(known, 0.9)) if known.size else None,
        computed_tps=computed_tps,
        generated_tps=generated_tps,
        cached_tps=cached_tps,
        residence_s=held,
        preemptions=_sum(preempted),
        usage_line=_usage_line(running, usage, quiet),
        latency_pairs=_latency_pairs(running, column("itl_s"), waiting, quiet),
        places={
            name: timeline.place(name, when)
            for name in ("running", "kv_usage", "preemptions", "itl_s", "hit_rate", "prompt_len")
        },
    )


def _sum(values: Series) -> float | None:
    return float(np.nansum(values)) if np.isfinite(values).any() else None


def _mean(values: Series) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _max(values: Series) -> float | None:
    return float(np.nanmax(values)) if np.isfinite(values).any() else None


def _per_second(amounts: Series, span: float) -> float | None:
    total = _sum(amounts)
    return None if total is None or span <= 0 else total / span


def _weighted(values: Series, weights: Series) -> float | None:
    both = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    if not both.any():
        return _mean(values)
    return float(np.average(values[both], weights=weights[both]))


def _mean_length(tokens: Series, finished: Series) -> Lengths | None:
    total, count = _sum(tokens), _sum(finished)
    return Lengths(total / count, None, None) if total and count else None


def _held(e2e: Series, queue: Series, finished: Series) -> float | None:
    whole = _weighted(e2e, finished)
    if whole is None:
        return None
    return max(0.0, whole - (_weighted(queue, finished) or 0.0)) or None


def _lengths(
    timeline: EngineTimeline, name: str, times: Series, means: Series, finished: Series
) -> Lengths | None:
    histogram = timeline.histograms.get(name)
    mean = _weighted(means, finished)
    if histogram is None or not times.size:
        return Lengths(mean, None, None) if mean else None
    counts = histogram.over(float(times[0]) - timeline.step_s, float(times[-1]))
    if not np.isfinite(counts).all() or counts[-1] <= 0:
        return Lengths(mean, None, None) if mean else None
    edges = histogram.edges.copy()
    # What lies above the last finite edge is taken as that edge: a lower bound of the tail.
    edges[-1] = edges[-2]
    share = np.concatenate(([0.0], counts / counts[-1]))
    bounds = np.concatenate(([0.0], edges))
    sample = np.interp((np.arange(400) + 0.5) / 400, share, bounds)
    middle = float(sample.mean())
    if middle <= 0:
        return Lengths(mean, None, None) if mean else None
    if mean:
        sample = sample * (mean / middle)
    centre = mean or middle
    return Lengths(
        centre,
        float(sample.std() / centre),
        float(np.quantile(sample, 0.99) / centre),
        tuple(float(value) for value in sample),
    )


# Least part of usage that must follow running for the slope to mean anything (guess).
_LEAST_PART = 0.02


def _usage_line(running: Series, usage: Series, quiet: Series) -> Line | None:
    fit = np.isfinite(running) & np.isfinite(usage) & quiet
    fit &= (running >= FIT_FROM) & (usage < SATURATED) & (usage > 0)
    if np.count_nonzero(fit) < 8:
        return None
    x, y = running[fit], usage[fit]
    if x.max() < FIT_SPREAD * x.min():
        return None
    line = fit_line(x.tolist(), y.tolist())
    # Usage that does not rise with running says nothing of what one more request would hold.
    if line is None or line.slope * x.mean() < _LEAST_PART * y.mean():
        return None
    if line.intercept >= 0:
        return line
    # Less than nothing cannot be shared: the line goes through the origin.
    slope = float((x * y).sum() / (x * x).sum())
    errors = y - slope * x
    residual = float((errors * errors).sum() / max(1, x.size - 1))
    return Line(0.0, slope, 0.0, (residual / float((x * x).sum())) ** 0.5, x.size)


def _latency_pairs(
    running: Series, latency: Series, waiting: Series, quiet: Series
) -> tuple[tuple[float, float], ...]:
    # Waiting after a preemption counts as inter-token latency: those scrapes say nothing of steps.
    fit = np.isfinite(running) & np.isfinite(latency) & (running >= 1) & (latency > 0) & quiet
    return tuple((float(a), float(b)) for a, b in zip(running[fit], latency[fit], strict=True))
