"""One window of one engine → the figures that rules and attribution compare.

All from the grid; rates are sums over sums, so that thin intervals do not weigh like busy ones.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.episodes import Span
from forensics.timeline import EngineTimeline

# A pool counts as exhausted from here on (diagnosis.md, section 2, `sat`).
SATURATED = 0.97


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over a window; None where the signal was not observed in it.

    Attributes:
        seconds / points: length and number of grid points.
        requests: requests that began to answer (else finished).
        hit_rate: hits over lookups by the best definition; `counter_rate` by the raw counters.
        queries_per_prompt_token: above 1.2 the counters are no hit rate.
        hit_per_request / miss_per_request: prompt tokens per request from cache / computed.
        prompt_len / output_len: tokens per request.
        usage / usage_max: referenced share of the pool; `saturated` share of points from 0.97 on.
        usage_per_running: pool share per running request.
        running / waiting / waiting_max: requests; `waiting_deferred` for another reason than room.
        preemptions: count; `preemptions_per_request`; `preemptions_per_min`.
        residence_s: survival of a released block, from the window's own totals.
        written_tokens: tokens newly written to the pool (computed prompt and generated).
        requests_per_s, prompt_tps, generation_tps: per second.
        computed_tps: prompt tokens per second that were not found in the cache.
        ttft_s, e2e_s, queue_s, prefill_s, decode_s, itl_s: means, seconds.
        aborted, rejected: counts.
    """

    seconds: float
    points: int
    requests: float | None = None
    hit_rate: float | None = None
    counter_rate: float | None = None
    queries_per_prompt_token: float | None = None
    hit_per_request: float | None = None
    miss_per_request: float | None = None
    prompt_len: float | None = None
    output_len: float | None = None
    usage: float | None = None
    usage_max: float | None = None
    saturated: float | None = None
    usage_per_running: float | None = None
    running: float | None = None
    running_max: float | None = None
    waiting: float | None = None
    waiting_max: float | None = None
    waiting_deferred: float | None = None
    swapped_max: float | None = None
    preemptions: float | None = None
    preemptions_per_request: float | None = None
    preemptions_per_min: float | None = None
    residence_s: float | None = None
    written_tokens: float | None = None
    requests_per_s: float | None = None
    prompt_tps: float | None = None
    computed_tps: float | None = None
    generation_tps: float | None = None
    ttft_s: float | None = None
    e2e_s: float | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    itl_s: float | None = None
    aborted: float | None = None
    rejected: float | None = None
    block_idle_s: float | None = None
    block_reuse_s: float | None = None


def figures(timeline: EngineTimeline, span: Span, pool_tokens: float | None = None) -> Figures:
    """Sum up a window.

    Args:
        timeline: the engine.
        span: UTC seconds, (start, end].
        pool_tokens: N, to estimate the residence time; None when unknown.
    """
    key = ("figures", span, pool_tokens)
    return timeline.once(key, lambda: _figures(timeline, span, pool_tokens))


def _figures(timeline: EngineTimeline, span: Span, pool_tokens: float | None) -> Figures:
    grid = timeline.within(span.start, span.end)
    if not grid.height:
        return Figures(max(0.0, span.end - span.start), 0)
    read = _Reader(grid)
    seconds = read.total("elapsed_s") or max(timeline.step_s, 1.0)
    requests = read.total("first_tokens")
    if requests is None:
        requests = read.total("finished")
    prompt = read.total("prompt_tokens")
    rate = read.weighted("hit_rate", "hit_weight")
    # V1's prompt counter books a prompt when its first token comes; lookups when it is admitted.
    per_request = _over(prompt, requests)
    if per_request is None:
        per_request = read.mean("prompt_len")
    generated = read.total("generation_tokens")
    preemptions = read.total("preemptions")
    proven = read.total("preemption_lower_bound")
    if proven is not None and proven > (preemptions or 0.0):
        preemptions = proven
    usage, running = read.mean("kv_usage"), read.mean("running")
    computed = read.total("computed_tokens")
    if computed is None and prompt is not None and rate is not None:
        computed = prompt * (1.0 - rate)
    written = None if computed is None or generated is None else computed + generated
    return Figures(
        seconds=seconds,
        points=grid.height,
        requests=requests,
        hit_rate=rate,
        counter_rate=read.weighted("counter_hit_rate", "queries"),
        queries_per_prompt_token=_over(read.total("queries"), prompt),
        hit_per_request=_times(per_request, rate),
        miss_per_request=_times(per_request, None if rate is None else 1.0 - rate),
        prompt_len=per_request,
        output_len=_over(generated, read.total("finished")),
        usage=usage,
        usage_max=read.peak("kv_usage"),
        saturated=read.share_above("kv_usage", SATURATED),
        usage_per_running=_over(usage, running),
        running=running,
        running_max=read.peak("running"),
        waiting=read.mean("waiting"),
        waiting_max=read.peak("waiting"),
        waiting_deferred=read.mean("waiting_deferred"),
        swapped_max=read.peak("swapped"),
        preemptions=preemptions,
        preemptions_per_request=_over(preemptions, read.total("finished") or requests),
        preemptions_per_min=_over(_times(preemptions, 60.0), seconds),
        residence_s=_residence(pool_tokens, usage, computed, prompt, generated, seconds),
        written_tokens=written,
        requests_per_s=_over(read.total("finished"), seconds),
        prompt_tps=_over(prompt, seconds),
        computed_tps=_over(computed, seconds),
        generation_tps=_over(generated, seconds),
        ttft_s=read.weighted("ttft_s", "first_tokens"),
        e2e_s=read.weighted("e2e_s", "ended"),
        queue_s=read.weighted("queue_s", "ended"),
        prefill_s=read.weighted("prefill_s", "ended"),
        decode_s=read.weighted("decode_s", "ended"),
        itl_s=read.mean("itl_s"),
        aborted=read.total("aborted"),
        rejected=read.total("rejected"),
        block_idle_s=read.mean("block_idle_s"),
        block_reuse_s=read.mean("block_reuse_s"),
    )


class _Reader:
    """Reads columns of a window; None stays None."""

    def __init__(self, grid: pl.DataFrame) -> None:
        self._grid = grid

    def _known(self, name: str) -> np.ndarray:
        return self._grid[name].drop_nulls().to_numpy()

    def total(self, name: str) -> float | None:
        values = self._known(name)
        return float(values.sum()) if values.size else None

    def mean(self, name: str) -> float | None:
        values = self._known(name)
        return float(values.mean()) if values.size else None

    def peak(self, name: str) -> float | None:
        values = self._known(name)
        return float(values.max()) if values.size else None

    def share_above(self, name: str, level: float) -> float | None:
        values = self._known(name)
        return float((values >= level).mean()) if values.size else None

    def weighted(self, name: str, weight: str) -> float | None:
        pair = self._grid.select(name, weight).drop_nulls()
        if not pair.height:
            return self.mean(name)
        values, weights = pair[name].to_numpy(), pair[weight].to_numpy()
        total = float(weights.sum())
        return float((values * weights).sum() / total) if total > 0 else None


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole is not None and whole > 0 else None


def _times(left: float | None, right: float | None) -> float | None:
    return left * right if left is not None and right is not None else None


def _residence(
    pool: float | None,
    usage: float | None,
    computed: float | None,
    prompt: float | None,
    generated: float | None,
    seconds: float,
) -> float | None:
    """Estimate the residence time (batch-ceiling.md 5.1) from a window's totals."""
    if pool is None or usage is None or computed is None or generated is None or prompt is None:
        return None
    written = (computed + generated) / seconds
    if written <= 0:
        return None
    high = pool * (1.0 - usage) / written
    low = pool * (1.0 - usage) / (written + max(0.0, prompt - computed) / seconds)
    return min(high, 1.17 * float(np.sqrt(low * high)))
