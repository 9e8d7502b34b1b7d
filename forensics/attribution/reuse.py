"""Block histograms of a window → whether eviction cuts the gaps of reuse short.

Reuse gaps are recorded for blocks that survived, so their histogram ends where eviction begins:
it is censored at the residence time (diagnosis.md, "what cannot be separated"). How it ends tells
what was cut. If reuses are about as frequent per second just before that end as at short gaps, the
true gaps go on beyond it and are lost; if they have died away long before, eviction takes nothing.
"""

import numpy as np

from forensics.episodes import Span
from forensics.timeline import EngineTimeline, Histogram

_LEAST_COUNT = 30.0  # fewer reuses or evictions than this say nothing of a shape (guess)


def reuse_at_the_end(timeline: EngineTimeline, span: Span) -> float | None:
    """Compare how frequent reuses are in the second and the first half of the residence time.

    The residence time is taken as the median idle time before eviction; counts inside a bucket are
    spread evenly.

    Returns:
        Reuses per second in the second half over those in the first; near 1 when reuse goes on
        beyond it, near 0 when it died away before. None without enough sampled blocks.
    """
    gaps, idle = timeline.histograms.get("block_reuse_s"), timeline.histograms.get("block_idle_s")
    if gaps is None or idle is None:
        return None
    reused, evicted = gaps.over(span.start, span.end), idle.over(span.start, span.end)
    if reused[-1] < _LEAST_COUNT or evicted[-1] < _LEAST_COUNT:
        return None
    residence = float(np.interp(evicted[-1] / 2, np.concatenate(([0.0], evicted)), _bounds(idle)))
    early = _below(gaps, reused, residence / 2)
    late = _below(gaps, reused, residence) - early
    return late / early if early > 0 else None


def _bounds(histogram: Histogram) -> np.ndarray:
    """Give the bucket bounds from zero on; the last bucket is taken to end at twice its start."""
    finite = histogram.edges[:-1]
    return np.concatenate(([0.0], finite, [2.0 * finite[-1]]))


def _below(histogram: Histogram, cumulative: np.ndarray, seconds: float) -> float:
    return float(np.interp(seconds, _bounds(histogram), np.concatenate(([0.0], cumulative))))
