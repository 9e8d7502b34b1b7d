"""How a fall came about in time: how sharply, and how often the free pool turned over meanwhile."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.episodes import Episode
from forensics.timeline import EngineTimeline

# Intervals that count as "at once": the interval in which the change falls is a mixture, the next
# two are the first clean ones.
_EARLY_POINTS = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """The course of one fall.

    Attributes:
        early: share of the fall reached in the first intervals, 0-1.
        first_half: mean loss in the first half of the low time over that in the second half.
        turnover: tokens newly written from the onset until half of the fall was reached, over the
            free tokens of the pool then; below 1 a block released right before the onset was still
            there. None without pool size or token counters.
        usage: highest share of the pool in use from the onset until then; None when not observed.
        halfway: when half of the fall was reached, UTC seconds.
        early_turnover: as `turnover`, over the first intervals: near 1 what is evicted is gone
            within them, so that a sharp fall says nothing.
    """

    early: float
    first_half: float
    turnover: float | None
    usage: float | None
    halfway: float
    early_turnover: float | None


def shape(timeline: EngineTimeline, episode: Episode, pool_tokens: float | None) -> Shape | None:
    """Describe the course of a fall; None when no interval of it carries traffic."""
    weight_name = "hit_weight" if episode.signal == "hit_rate" else "queries"
    low = (
        timeline.within(episode.onset[0], episode.after.end)
        .select("time", episode.signal, weight_name)
        .drop_nulls()
    )
    fall = episode.before - episode.level
    if not low.height or fall <= 0:
        return None
    times, rate, weight = (low[name].to_numpy() for name in low.columns)
    if float(weight.sum()) <= 0:
        return None
    early = (episode.before - _mean(rate[:_EARLY_POINTS], weight[:_EARLY_POINTS])) / fall
    middle = max(1, rate.size // 2)
    first = episode.before - _mean(rate[:middle], weight[:middle])
    late = slice(min(middle, rate.size - 1), None)  # a single point is both halves
    last = episode.before - _mean(rate[late], weight[late])
    halfway = np.flatnonzero(episode.before - rate >= 0.5 * fall)
    reached = float(times[halfway[0]]) if halfway.size else float(times[-1])
    at = timeline.grid["time"].to_numpy()
    # The interval that ends at the onset is counted in: the change may lie anywhere in it.
    return Shape(
        early=float(np.clip(early, 0.0, 1.0)),
        first_half=float(np.clip(first / last, 0.0, 1.0)) if last > 0 else 1.0,
        turnover=turnover(timeline, (at >= episode.onset[0]) & (at <= reached), pool_tokens),
        usage=_peak(timeline, episode.onset[0], reached),
        halfway=reached,
        early_turnover=turnover(
            timeline,
            (at > episode.onset[0]) & (at <= times[:_EARLY_POINTS][-1]),
            pool_tokens,
        ),
    )


def written(timeline: EngineTimeline) -> np.ndarray | None:
    """Give the tokens newly written to the pool in each interval, shape (n,); None if unknown.

    Computed prompt tokens and generated ones; where no counter of computed tokens exists, the
    prompt tokens that were not hits.
    """
    return timeline.once("written", lambda: _written(timeline.grid))


def _written(grid: pl.DataFrame) -> np.ndarray | None:
    generated = grid["generation_tokens"]
    prompt = grid["prompt_tokens"]
    if generated.null_count() == grid.height or prompt.null_count() == grid.height:
        return None
    computed = grid["computed_tokens"].cast(pl.Float64).to_numpy()
    rate = grid["hit_rate"].fill_null(0.0).to_numpy()
    guess = prompt.fill_null(0.0).to_numpy() * (1.0 - np.clip(rate, 0.0, 1.0))
    total: np.ndarray = np.where(np.isnan(computed), guess, computed)
    added: np.ndarray = generated.fill_null(0.0).to_numpy()
    result: np.ndarray = total + added
    return result


def turnover(
    timeline: EngineTimeline, inside: np.ndarray, pool_tokens: float | None
) -> float | None:
    """Give the tokens newly written over the free tokens of the pool; None if either is unknown.

    Args:
        timeline: the engine.
        inside: which points of its grid to sum up, shape (n,), bool.
        pool_tokens: N, None when unknown.
    """
    grid = timeline.grid
    amounts = written(timeline)
    if pool_tokens is None or amounts is None or not timeline.has("kv_usage"):
        return None
    usage = grid["kv_usage"].to_numpy()[inside]
    usage = usage[~np.isnan(usage)]
    if not usage.size:
        return None
    free = pool_tokens * (1.0 - float(usage.mean()))
    return float(amounts[inside].sum()) / max(free, 1.0)


def _peak(timeline: EngineTimeline, start: float, end: float) -> float | None:
    usage = timeline.within(start, end)["kv_usage"].drop_nulls().to_numpy()
    return float(usage.max()) if usage.size else None


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    total = float(weights.sum())
    return float((values * weights).sum() / total) if total > 0 else float(values.mean())
