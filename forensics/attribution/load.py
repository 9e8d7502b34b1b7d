"""Whether load rose before the hits fell, and how far the pool had turned over by then.

A pool that suddenly serves more requests goes on hitting until what is newly written has pushed out
the blocks that were there: hits hold, then break although nothing changes at that moment. Prompts
that share less miss from their first request on.
"""

from dataclasses import dataclass

import numpy as np

from forensics.attribution.onset import Shape, turnover, written
from forensics.episodes import Episode
from forensics.timeline import EngineTimeline

# More load (diagnosis.md 3.6, `run`), and how far beyond its own wander.
_MORE = 1.8
_ERRORS = 4.0
# Ten percent of wander at least: requests in a server are few and come in bursts. Guess.
_LEAST = 0.1
# A pool that turned over this often since load rose has settled; a later fall is another event.
_SETTLED = 5.0
# Points that show the load before it rose.
_CALM_POINTS = 6
_CALM_MOST = 40
_RAISED_POINTS = 2
# Hits held only if they were seen to, twice: a small pool turns over within a scrape.
_HELD_POINTS = 2
_RECENT = 10
_ANEW = ("start", "restart")


@dataclass(frozen=True, slots=True)
class Rise:
    """Load before a fall, and how it rose.

    Attributes:
        before / after: requests in the server, running and waiting, means; alike without a rise.
        held: tokens newly written from the rise until the hits began to fall, over the free pool;
            None without a rise, or where usage was not watched meanwhile.
    """

    before: float
    after: float
    held: float | None


def load_rise(
    timeline: EngineTimeline, episode: Episode, course: Shape, pool_tokens: float | None
) -> Rise | None:
    """Find the rise of load that a fall may have followed.

    None where too few points show the load, or nothing tells how often the pool turned over.

    Args:
        timeline: the engine.
        episode: the fall.
        course: how it came about.
        pool_tokens: N, None when unknown.
    """
    grid = timeline.grid
    starts = (mark.time for mark in timeline.marks if mark.kind in _ANEW)
    begun = max((time for time in starts if time <= course.halfway), default=-np.inf)
    times = grid["time"].to_numpy()
    waiting = grid["waiting"] if timeline.has("waiting") else grid["waiting"].fill_null(0.0)
    live = (grid["running"] + waiting).to_numpy()
    known = np.flatnonzero(~np.isnan(live) & (times >= begun) & (times <= course.halfway))
    if known.size < _CALM_POINTS + _RAISED_POINTS:
        return None
    at, live = times[known], live[known]
    since = _since(timeline, episode.onset[0], pool_tokens)
    if since is None:
        return None
    oldest = int(np.searchsorted(at, since))
    start = max(0, oldest - _CALM_MOST)
    split = _step(np.log1p(live[start:]), max(_CALM_POINTS, oldest - start))
    if split is None:
        return Rise(float(live.mean()), float(live.mean()), None)
    split += start
    between = (times > at[split - 1]) & (times <= episode.onset[0])
    seen = int(between.sum()) >= _HELD_POINTS
    held = turnover(timeline, between, pool_tokens) if seen else 0.0
    return Rise(float(live[start:split].mean()), float(live[split:].mean()), held)


def _since(timeline: EngineTimeline, onset: float, pool_tokens: float | None) -> float | None:
    """Give from when on the pool had not settled yet at the onset, UTC seconds."""
    amounts = written(timeline)
    times = timeline.grid["time"].to_numpy()
    earlier = np.flatnonzero(times <= onset)[::-1]
    usage = timeline.grid["kv_usage"].to_numpy()[earlier]
    recent = usage[~np.isnan(usage)][:_RECENT]
    if pool_tokens is None or amounts is None or not recent.size:
        return None
    free = pool_tokens * (1.0 - float(recent.mean()))
    total = np.cumsum(amounts[earlier])
    enough = int(np.searchsorted(total, _SETTLED * max(free, 1.0)))
    return float(times[earlier[min(enough, earlier.size - 1)]])


def _step(level: np.ndarray, first: int) -> int | None:
    """Find the rise that splits a series best, from an index on; None when it is no rise."""
    total, count = np.cumsum(level), level.size
    splits = np.arange(first, count - _RAISED_POINTS + 1)
    if not splits.size:
        return None
    below = total[splits - 1]
    gains = (total[-1] - below) / (count - splits) - below / splits
    split = int(splits[np.argmax(gains * np.abs(gains) * splits * (count - splits))])
    low, high = level[:split], level[split:]
    gain = float(high.mean() - low.mean())
    wander = float(np.hypot(np.concatenate([low - low.mean(), high - high.mean()]).std(), _LEAST))
    error = wander * np.sqrt(1.0 / low.size + 1.0 / high.size)
    return split if gain >= np.log(_MORE) and gain >= _ERRORS * error else None
