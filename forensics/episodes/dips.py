"""Events that empty a cache → the dip that follows, however short.

After a restart or a reset shared prompts are back within one request and sessions within one think
time, so the dip may last two or three scrapes: too short for a level of its own, but it begins at a
known instant, and needs no search (diagnosis.md 1.4 and 3.2).
"""

import numpy as np
import polars as pl

from forensics.episodes.detect import LEAST_FALL
from forensics.episodes.records import Episode, Span
from forensics.episodes.segments import noise_per_weight
from forensics.timeline import EngineTimeline

_EMPTYING = ("restart", "reset", "sleep")
# What is compared: this long before the event, and at most this many points after it.
_BASELINE_S = 600.0
_MOST_POINTS = 8
_LEAST_BEFORE = 2
# An event and the first point that shows it lie within the alignment of log and metrics.
_SLACK_POINTS = 2.0
_FIRST_S = 180.0  # the label rule of the reference: a fall of 0.05 in the first three minutes
# Instant and direction are given by the event, not found by a search: two errors are enough.
_ERRORS = 2.0


def event_dips(timeline: EngineTimeline, *, passing: bool = False) -> tuple[Episode, ...]:
    """Find falls of the hit rate that begin at a restart, reset or sleep of one engine.

    Args:
        timeline: the engine.
        passing: give those instead which the first three minutes as a whole do not show: no
            incident by themselves.
    """
    grid = timeline.grid.filter(
        pl.col("hit_rate").is_not_null() & (pl.col("hit_weight").fill_null(0.0) > 0)
    )
    if grid.height < _LEAST_BEFORE + 1:
        return ()
    times = grid["time"].to_numpy()
    rate, weight = grid["hit_rate"].to_numpy(), grid["hit_weight"].to_numpy()
    noise = noise_per_weight(rate, weight)
    found: list[Episode] = []
    for mark in timeline.marks:
        if mark.kind not in _EMPTYING:
            continue
        dip = _dip(timeline, times, rate, weight, noise, mark.time, passing)
        if dip is not None and not any(abs(dip.onset[1] - e.onset[1]) < 1.0 for e in found):
            found.append(dip)
    return tuple(found)


def _dip(
    timeline: EngineTimeline,
    times: np.ndarray,
    rate: np.ndarray,
    weight: np.ndarray,
    noise: float,
    event: float,
    passing: bool,
) -> Episode | None:
    step = timeline.step_s
    before = (times >= event - _BASELINE_S) & (times < event - 0.5 * step)
    if int(before.sum()) < _LEAST_BEFORE:
        return None
    base_weight = float(weight[before].sum())
    base = float((rate[before] * weight[before]).sum() / base_weight)
    after = np.flatnonzero(times > event - 0.5 * step)
    # A point that still lies before the event by the clocks' slack may begin the list.
    while (
        after.size
        and times[after[0]] <= event + _SLACK_POINTS * step
        and (base - rate[after[0]] < LEAST_FALL)
    ):
        after = after[1:]
    if not after.size:
        return None
    low = after[:_MOST_POINTS]
    back = np.flatnonzero(base - rate[low] < LEAST_FALL)
    length = int(back[0]) if back.size else low.size
    if length == 0:
        return None
    inside = low[:length]
    dip_weight = float(weight[inside].sum())
    level = float((rate[inside] * weight[inside]).sum() / dip_weight)
    error = float(np.sqrt(noise / base_weight + noise / dip_weight))
    if base - level < max(LEAST_FALL, _ERRORS * error):
        return None
    # A dip of a scrape or two is no incident: the first minutes as a whole must have lost hits.
    early = after[times[after] <= times[after[0]] + _FIRST_S]
    early_level = float((rate[early] * weight[early]).sum() / weight[early].sum())
    if (base - early_level < LEAST_FALL) is not passing:
        return None
    first, last = int(inside[0]), int(inside[-1])
    known = np.flatnonzero(before)
    return Episode(
        engine=timeline.engine,
        signal="hit_rate",
        onset=(float(times[known[-1]]), float(times[first])),
        end=float(times[last]),
        recovered=bool(back.size),
        baseline=Span(float(times[known[0]]) - step, float(times[known[-1]])),
        after=Span(float(times[first]) - step, float(times[last])),
        before=base,
        level=level,
        error=error,
    )
