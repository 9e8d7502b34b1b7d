"""The grid of one engine → episodes: falls of the hit rate, and rises of what hurts.

A fall counts when it is at least 0.05 (the noise limit of diagnosis.md, section 0) and three
standard errors, of intervals and of requests, with enough traffic on both sides. Steps down that
follow each other within the time a change takes to work through are one episode.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.episodes.records import Episode, Span
from forensics.episodes.segments import SHORTEST, Segment, noise_per_weight, segments
from forensics.timeline import EngineTimeline

LEAST_FALL = 0.05  # noise limit of a fall (diagnosis.md, section 0)
_ERRORS = 3.0
# A dip that comes back is the deepest of some twenty places looked at, and sessions come in several
# requests each. Guess; it takes away four of nine false alarms on 285 steady model servers.
_PASSING_ERRORS = 4.0
# A recovery: most of what was lost is back. (For restarts the reference asks for half, which the
# attribution looks at; a rate that came back by half only is still an incident.) Guess.
_RECOVERED_SHARE = 0.7
# Steps down are one change when each piece between them is short: a change works through the
# running requests in about this long (waits and residence are tens of seconds), or is not resolved
# by the scrapes. Guess, checked on recordings with two causes 45 s apart at 2 s scrapes.
_ONE_CHANGE_POINTS = 12
_ONE_CHANGE_S = 45.0
_PART_OF_STEP = 0.2
_LEAST_REQUESTS = 15.0
# A small fall must last for the shortest segment of diagnosis.md 3.3; a rate wanders by that much
# over a few scrapes.
_SMALL_FALL = 0.15
_LEAST_POINTS = 8
_LEAST_INTERVALS = 3
_BRIEF = 2
_WINDOW_REQUESTS = 100.0
_WORST_BINOMIAL = 0.25


@dataclass(frozen=True, slots=True)
class Falls:
    """Steps down of a hit rate, in order of time.

    Attributes:
        carried: those that are more than their requests make by chance.
        doubtful: those which so few requests, or so few points, may make by chance: they are no
            falls, and keep it from being said that nothing fell.
    """

    carried: tuple[Episode, ...]
    doubtful: tuple[Episode, ...]


@dataclass(frozen=True, slots=True)
class _Series:
    """A rate, interval by interval.

    Attributes:
        times / rate / weight: UTC seconds at which intervals end, rates, tokens behind them.
        requests: that began to answer, per interval; None when not counted.
        noise: variance of an interval's rate times its weight.
        step: seconds between intervals; 0 where each is as long as the time since the last.
    """

    times: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    requests: np.ndarray | None
    noise: float
    step: float


def hit_rate_falls(timeline: EngineTimeline, signal: str = "hit_rate") -> Falls:
    """Find the steps down of a hit-rate signal of one engine.

    Args:
        timeline: the engine.
        signal: ``hit_rate``, or ``counter_hit_rate`` to find falls that only the counters show.
    """
    return timeline.once(("hit_rate_falls", signal), lambda: _carried(timeline, signal))


def _carried(timeline: EngineTimeline, signal: str) -> Falls:
    found = _all_falls(timeline, signal)
    uncarried = [item for item in found if not _is_carried(item)]
    return Falls(
        carried=tuple(item for item in found if _is_carried(item)),
        doubtful=(*uncarried, *_all_falls(timeline, signal, brief=True)),
    )


def hit_rate_episodes(timeline: EngineTimeline) -> tuple[Episode, ...]:
    """Find the falls of the hit rate of one engine, in order of time."""
    return hit_rate_falls(timeline).carried


def _all_falls(timeline: EngineTimeline, signal: str, *, brief: bool = False) -> Sequence[Episode]:
    """Find steps down; brief: those of two points and more, where two levels of eight lack room."""
    weight_name = "hit_weight" if signal == "hit_rate" else "queries"
    grid = timeline.grid.filter(
        pl.col(signal).is_not_null() & pl.col(weight_name).is_not_null() & (pl.col(weight_name) > 0)
    )
    requests = _requests(grid)
    few = grid.height < _LEAST_POINTS
    if few and (timeline.grid.height < _LEAST_POINTS or not judged_singly(requests)):
        return ()
    if brief and grid.height >= 2 * _LEAST_POINTS:
        return ()
    if requests is not None and not requests.any():
        return ()  # none carries a fall
    times = grid["time"].to_numpy()
    rate = grid[signal].to_numpy()
    weight = grid[weight_name].to_numpy()
    # A few scrapes far apart have no noise to read off, but many requests behind each: hits of one
    # request stand or fall together, so the binomial of requests is what they wander by.
    shortest, step = (1, 0.0) if few else (SHORTEST, _spacing(timeline, times))
    shortest = min(shortest, _BRIEF) if brief else shortest
    noise = noise_per_weight(rate, weight)
    if (few or brief) and requests is not None:
        noise = _WORST_BINOMIAL * float(weight.sum() / requests.sum())
    pieces: list[Segment] = []
    for first, last in _epochs(timeline, times):
        inside = slice(first, last + 1)
        inner = segments(rate[inside], weight[inside], shortest, noise if few or brief else None)
        pieces += [
            Segment(p.first + first, p.last + first, p.mean, p.weight, p.error) for p in inner
        ]
    return _falls(
        timeline.engine, signal, _Series(times, rate, weight, requests, noise, step), pieces
    )


def judged_singly(requests: np.ndarray | None) -> bool:
    """Tell whether intervals carry enough requests each to be compared one by one.

    Three at least, each with the 100 requests that diagnosis.md, section 0, asks of a window.
    """
    if requests is None:
        return False
    full = requests[requests > 0]
    return full.size >= _LEAST_INTERVALS and float(full.min()) >= _WINDOW_REQUESTS


def _requests(grid: pl.DataFrame) -> np.ndarray | None:
    for name in ("first_tokens", "finished"):
        column = grid[name]
        if 2 * column.null_count() < column.len():  # a few scrapes beside a log count no window
            return column.fill_null(0.0).to_numpy()
    return None


def _spacing(timeline: EngineTimeline, times: np.ndarray) -> float:
    """Give how long an interval of the rate lasts: scrapes may be rarer than the lines beside."""
    return max(timeline.step_s, float(np.median(np.diff(times))))


def _epochs(timeline: EngineTimeline, times: np.ndarray) -> list[tuple[int, int]]:
    """Give index ranges between process starts: nothing is averaged across a restart."""
    cuts = [0]
    for mark in timeline.marks:
        if mark.kind == "restart":
            cut = int(np.searchsorted(times, mark.time))
            if cuts[-1] < cut < times.size:
                cuts.append(cut)
    cuts.append(times.size)
    return [(cuts[i], cuts[i + 1] - 1) for i in range(len(cuts) - 1)]


def _falls(engine: str, signal: str, series: _Series, pieces: Sequence[Segment]) -> list[Episode]:
    times, step, requests = series.times, series.step, series.requests
    found: list[Episode] = []
    index = 0
    while index + 1 < len(pieces):
        base, low = pieces[index], pieces[index + 1]
        if not _is_fall(base, low):
            index += 1
            continue
        bottom = index + 1
        while bottom + 1 < len(pieces):
            this, after = pieces[bottom], pieces[bottom + 1]
            longest = max(_ONE_CHANGE_S, _ONE_CHANGE_POINTS * step)
            brief = times[this.last] - times[this.first] <= longest
            if after.mean < this.mean and brief:
                bottom += 1
            else:
                break
        # A small step before the large one is an event of its own, not the onset of the large one,
        # if it lasts; a short one is the beginning of a ramp.
        lasting = low.last - low.first >= _ONE_CHANGE_POINTS
        if lasting and base.mean - low.mean < _PART_OF_STEP * (base.mean - pieces[bottom].mean):
            bottom = index + 1
        end_piece = bottom
        recovered = False
        while end_piece + 1 < len(pieces):
            after = pieces[end_piece + 1]
            floor = pieces[bottom].mean
            if after.mean - floor >= _RECOVERED_SHARE * (base.mean - floor):
                recovered = True
                break
            if _is_fall(pieces[end_piece], after):
                break
            end_piece += 1
        inside = pieces[bottom : end_piece + 1]
        held = _held(series, base, low)
        weight = sum(piece.weight for piece in inside)
        level = sum(piece.mean * piece.weight for piece in inside) / weight
        error = float(np.sqrt(series.noise / base.weight + series.noise / weight))
        episode = Episode(
            engine=engine,
            signal=signal,
            onset=(float(times[base.last]), float(times[low.first + held])),
            end=float(times[inside[-1].last]),
            recovered=recovered,
            baseline=Span(_before(times, base.first, step), float(times[base.last])),
            after=Span(_before(times, inside[0].first, step), float(times[inside[-1].last])),
            before=base.mean,
            level=level,
            error=error,
            requests_before=_sum(requests, base.first, base.last),
            requests_after=_sum(requests, inside[0].first, inside[-1].last),
        )
        if _enough(episode, inside[-1].last - inside[0].first + 1):
            found.append(episode)
        index = max(end_piece + int(recovered), bottom)
    return found


def _held(series: _Series, base: Segment, low: Segment) -> int:
    """Give how many first points of a piece still have the level before it.

    A piece must have some points, so one interval of a rate on its way down takes neighbours along:
    the new level may begin later than its piece. A longer piece began where it fitted best.
    """
    if low.last - low.first >= SHORTEST:
        return 0
    inside = slice(low.first, low.last + 1)
    rate, weight = series.rate[inside], series.weight[inside]
    passed = np.concatenate(([0.0], np.cumsum(weight * (rate - base.mean) ** 2)[:-1]))
    rest_w, rest_h, rest_s = (
        np.cumsum(part[::-1])[::-1] for part in (weight, rate * weight, rate**2 * weight)
    )
    return int(np.argmin(passed + rest_s - rest_h**2 / rest_w))


def _before(times: np.ndarray, index: int, step: float) -> float:
    """Give where the interval that ends at a point begins."""
    if step > 0 or index == 0:
        return float(times[index]) - max(step, 1e-3)
    return float(times[index - 1])


def _is_fall(base: Segment, low: Segment) -> bool:
    fall = base.mean - low.mean
    error = float(np.hypot(base.error, low.error))
    return fall >= max(LEAST_FALL, _ERRORS * error)


def _enough(episode: Episode, points: int) -> bool:
    fall = episode.before - episode.level
    if fall < max(LEAST_FALL, _ERRORS * episode.error):
        return False
    dense = episode.requests_after is None or episode.requests_after < _WINDOW_REQUESTS * points
    if fall < _SMALL_FALL and points < _LEAST_POINTS and dense:
        return False
    counts = (episode.requests_before, episode.requests_after)
    return all(count is None or count >= _LEAST_REQUESTS for count in counts)


def _is_carried(episode: Episode) -> bool:
    """Tell whether a fall is more than its requests make by chance."""
    sides = (
        (episode.before, episode.requests_before),
        (episode.level, episode.requests_after),
    )
    spread = sum(_spread(rate, count) for rate, count in sides if count is not None)
    errors = _PASSING_ERRORS if episode.recovered else _ERRORS
    return episode.before - episode.level >= errors * math.sqrt(spread)


def _spread(rate: float, requests: float) -> float:
    """Give the variance of a hit rate whose requests hit or miss as a whole.

    Neighbouring intervals share their requests and sessions, so what they differ by misses slow
    wander; this does not. Half a hit and half a miss are added, so that 0 and 1 have a spread too.
    """
    smoothed = (rate * requests + 0.5) / (requests + 1.0)
    return smoothed * (1.0 - smoothed) / requests


def _sum(requests: np.ndarray | None, first: int, last: int) -> float | None:
    return None if requests is None else float(requests[first : last + 1].sum())
