"""The hit rate that stats lines print → whether it fell, and over what it was taken.

What the figure spans differs: V0 prints an average over the life of the process; V1 up to 0.10.2
one over as many engine steps as the first 1,000 requests took, which may hold any number of
requests later; from 0.11.0 on it is the last 1,000 requests (metrics reference, 3.2 and 3.3). What
counts as a lookup changed as well: tokens instead of blocks (0.9.0), without resumed requests
(0.11.1), once per admission (0.27.0). So levels are compared within one process, and between two
only where both mean the same.
"""

import math
from itertools import pairwise

import numpy as np
import polars as pl

from forensics.diary import Epoch
from forensics.episodes.detect import LEAST_FALL
from forensics.timeline import EngineTimeline

LIFETIME, STEPS, REQUESTS = "lifetime", "steps", "requests"
_CHANGED = ((0, 9, 0), (0, 11, 1), (0, 27, 0))
_ENOUGH_POINTS = 8
# The first lines of a process average over next to nothing.
_UNSETTLED = 2
# Lines from which the spread of one interval is taken, and standard errors that are no wander.
_EARLY_LINES = 30
_ERRORS = 3.0
_NORMAL_QUARTER = 0.3186  # first quartile of the absolute value of a standard normal variable
_NORMAL_MEDIAN = 0.6745  # median of the absolute value of a standard normal variable


def spans(epoch: Epoch) -> str:
    """Tell what the printed rate of a process is an average over."""
    if epoch.generation == "V0":
        return LIFETIME
    return STEPS if epoch.before(0, 11) is True else REQUESTS


def printed_fall(timeline: EngineTimeline) -> str | None:
    """Find a fall of the printed rate by 0.05 or more, beyond its early wander.

    Returns:
        What the rate that fell is an average over; None when it did not fall.
    """
    settled: dict[object, tuple[float, float]] = {}
    for epoch, values in _by_process(timeline):
        if values.size < _ENOUGH_POINTS:
            continue
        wander = _ERRORS * _wander(values)
        beyond = np.maximum(LEAST_FALL, wander)
        lowest = np.minimum.accumulate(values[::-1])[::-1]
        best, error = float(values.max()), float(wander[int(values.argmax())])
        earlier = settled.get(_meaning(epoch))
        below = earlier is not None and earlier[0] - best >= max(LEAST_FALL, earlier[1], error)
        if below or bool((values - lowest >= beyond).any()):
            return spans(epoch)
        settled[_meaning(epoch)] = (best, error)
    return None


def _by_process(timeline: EngineTimeline) -> list[tuple[Epoch, np.ndarray]]:
    """Give the settled printed rates of each process, in order of time."""
    rows = timeline.grid.select("time", "logged_hit_rate").drop_nulls()
    starts = [epoch.start for epoch in timeline.diary.epochs[1:] if epoch.start is not None]
    starts += [mark.time for mark in timeline.marks if mark.kind in ("restart", "reset")]
    cuts = [-np.inf, *sorted(starts), np.inf]
    found: list[tuple[Epoch, np.ndarray]] = []
    for begin, end in pairwise(cuts):
        inside = rows.filter((pl.col("time") > begin) & (pl.col("time") <= end))
        if inside.height:
            epoch = timeline.diary.at(float(inside["time"][-1]))
            found.append((epoch, inside["logged_hit_rate"].to_numpy()[_UNSETTLED:]))
    return found


def _wander(values: np.ndarray) -> np.ndarray:
    """Give by how much each printed value lies off the level by chance; shape (n,).

    While it is a mean over all requests so far, by the spread of one interval over the root of
    their number. Once it is one over the latest w intervals, each line moves it by r = spread x
    sqrt(2) / w, which tells w, and it wanders on by spread / sqrt(w), up and down: the highest and
    the lowest of some are twice as far apart as one is off, by 2 x sqrt(spread x r / sqrt(2)).
    """
    lines = np.arange(_UNSETTLED + 1, values.size + _UNSETTLED + 1)
    spread = _interval_spread(values, lines)
    result: np.ndarray = spread / np.sqrt(lines)
    late = np.abs(np.diff(values))[_EARLY_LINES:]
    if late.size < _ENOUGH_POINTS:
        return result
    move = float(np.quantile(late, 0.25)) / _NORMAL_QUARTER
    return result.clip(min=2.0 * math.sqrt(spread * move / math.sqrt(2.0)))


def _interval_spread(values: np.ndarray, lines: np.ndarray) -> float:
    """Give the spread of one interval's rate.

    Below 1,000 requests the printed rate is a mean over all of them, so its k-th value wanders by
    that spread over the root of k, and an interval moves it by the spread over k. The quarter that
    moved least shows it, unless a log begins so shortly before a fall that nearly all lines move;
    what neighbouring moves differ by shows it too, unless the traffic comes in bursts. The
    geometric mean of the two: of recordings of pure chance 3 in 100 seem to fall, 12 by the first.
    """
    moves = (np.abs(np.diff(values)) * lines[1:])[: _EARLY_LINES - 1]
    turns = (np.abs(np.diff(values, 2)) * lines[2:])[: _EARLY_LINES - 2]
    by_moves = float(np.quantile(moves, 0.25)) / _NORMAL_QUARTER
    by_turns = float(np.median(turns)) / (_NORMAL_MEDIAN * math.sqrt(2.0))
    return math.sqrt(by_moves * by_turns)


def _meaning(epoch: Epoch) -> tuple[object, ...]:
    return (spans(epoch), *(epoch.before(*release) for release in _CHANGED))
