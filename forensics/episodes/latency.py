"""A rise of a latency → an episode, for the time in which hits are fine and requests are slow.

Latencies vary by factors, so the logarithm of the interval means is cut into pieces of constant
level (see `segments`), each interval weighted by the requests behind it. A piece is a rise when it
lies well above everything before it, in its own noise and in what people notice.
"""

from math import exp, hypot, log, sqrt

import numpy as np

from forensics.episodes.records import Episode, Span
from forensics.episodes.segments import Segment, segments
from forensics.timeline import EngineTimeline

# Signals in the order in which one is believed, what stands behind each interval, and the least
# rise that anybody notices, seconds: a tenth of a second feels immediate (Nielsen 1993); text is
# read at some ten tokens a second, so 20 ms more between two tokens begins to matter (guess).
# The whole latency is not watched: longer answers lengthen it and hurt nobody.
WATCHED = (("ttft_s", "first_tokens", 0.1), ("itl_s", "generation_tokens", 0.02))
# A rise is at least this factor: queueing at equal capacity doubles a wait between 50 % and 67 %
# load, so less is everyday variation (guess).
_FACTOR = 2.0
_ERRORS = 4.0
_POINTS = 8  # points of a level, as for falls of the hit rate (diagnosis.md 3.3)
_REQUESTS = 30.0  # (or tokens) behind each level; below, one slow request makes the mean (guess)


def latency_episode(timeline: EngineTimeline) -> Episode | None:
    """Find the largest lasting rise of the time to first token, else of the time between tokens.

    Returns:
        The episode with `before` and `level` in seconds; None when nothing rose.
    """
    for signal, weight, noticed in WATCHED:
        if timeline.has(signal) and timeline.has(weight):
            found = _rise(timeline, signal, weight, noticed)
            if found is not None:
                return found
    return None


def _rise(timeline: EngineTimeline, signal: str, weight: str, noticed: float) -> Episode | None:
    rows = timeline.grid.select("time", signal, weight).drop_nulls()
    rows = rows.filter((rows[signal] > 0) & (rows[weight] > 0))
    times, value, weights = (rows[name].to_numpy() for name in ("time", signal, weight))
    best: Episode | None = None
    pieces = segments(np.log(value), weights, _POINTS)
    for at in range(1, len(pieces)):
        base = _joined(pieces[:at])
        rest = pieces[at:]
        if not _risen(base, rest[0], noticed):
            continue
        last = next((i for i, p in enumerate(rest) if not _risen(base, p, noticed)), len(rest))
        high = _joined(rest[:last])
        if min(base.weight, high.weight) < _REQUESTS:
            continue
        begin, first, end = float(times[0]), high.first, float(times[high.last])
        before = _mean(value, weights, base)
        level = _mean(value, weights, high)
        calm, start = float(times[base.last]), float(times[first])
        if best is None or level / before > best.level / best.before:
            best = Episode(
                engine=timeline.engine,
                signal=signal,
                onset=(calm, start),
                end=end,
                recovered=last < len(rest),
                baseline=Span(begin - timeline.step_s, calm),
                after=Span(calm, end),
                before=before,
                level=level,
                error=level * hypot(base.error, high.error),
                requests_before=base.weight,
                requests_after=high.weight,
            )
    return best


def _risen(base: Segment, piece: Segment, noticed: float) -> bool:
    """Tell whether a level (in log seconds) lies above another by enough to be felt and meant."""
    apart = piece.mean - base.mean
    added = exp(piece.mean) - exp(base.mean)
    return (
        apart >= log(_FACTOR)
        and added >= noticed
        and apart >= _ERRORS * hypot(base.error, piece.error)
    )


def _joined(pieces: list[Segment]) -> Segment:
    whole = sum(piece.weight for piece in pieces)
    mean = sum(piece.mean * piece.weight for piece in pieces) / whole
    spread = sum((piece.error * piece.weight) ** 2 for piece in pieces)
    return Segment(pieces[0].first, pieces[-1].last, mean, whole, sqrt(spread) / whole)


def _mean(value: np.ndarray, weights: np.ndarray, piece: Segment) -> float:
    inside = slice(piece.first, piece.last + 1)
    return float(np.average(value[inside], weights=weights[inside]))
