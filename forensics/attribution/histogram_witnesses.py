"""The witnesses that histograms give: prompt lengths, computed tokens, reuse gaps of blocks."""

import math

import numpy as np

from forensics.attribution.readings import Reading
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline, Histogram

# Shares of the mean prompt length below which a request counts as nearly all hit.
_SMALL_SHARE = 0.1
# Fewer requests than this were nearly all hit before: the witness has nothing to lose.
_ONCE_SMALL = 0.3
# diagnosis.md, section 2, `gi`: 90th percentile of the gap over the median of the idle time.
_LONG_GAP = 0.9
_LEAST_GAPS = 20.0


def _shares(histogram: Histogram, span: Span) -> np.ndarray | None:
    counts = histogram.over(span.start, span.end)
    total = float(counts[-1])
    return counts / total if total > 0 else None


def length_mix(histogram: Histogram | None, episode: Episode) -> Reading | None:
    """Give the largest difference of the two cumulative distributions of the prompt length."""
    if histogram is None:
        return None
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None:
        return None
    return Reading(float(np.abs(before - after).max()))


def gap_over_idle(timeline: EngineTimeline, span: Span) -> Reading | None:
    """Give the log of the long reuse gaps over the usual idle time before eviction.

    Gaps are recorded of blocks that survived only. Where the longest of them come near to the time
    that blocks survive, longer ones are cut off: those are lost hits.
    """
    gaps = timeline.histograms.get("block_reuse_s")
    idle = timeline.histograms.get("block_idle_s")
    if gaps is None or idle is None:
        return None
    long_gap = _quantile(gaps, span, _LONG_GAP)
    usual = _quantile(idle, span, 0.5)
    if long_gap is None or usual is None or long_gap <= 0 or usual <= 0:
        return None
    return Reading(math.log(long_gap / usual), usual, long_gap)


def _quantile(histogram: Histogram, span: Span, share: float) -> float | None:
    """Interpolate a quantile within its bucket; None with too few values."""
    counts = histogram.over(span.start, span.end)
    if counts[-1] < _LEAST_GAPS:
        return None
    edges = np.concatenate(([0.0], histogram.edges[:-1]))
    shares = np.concatenate(([0.0], counts[:-1] / counts[-1]))
    return float(np.interp(share, shares, edges))


def computed_spread(histogram: Histogram, episode: Episode) -> Reading | None:
    """Give the change of the entropy of computed tokens per request, in nats.

    Where everyone misses alike, all requests compute the same; eviction spares some and not others.
    """
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None:
        return None
    low, high = _entropy(before), _entropy(after)
    return Reading(high - low, low, high)


def _entropy(cumulative: np.ndarray) -> float:
    share = np.diff(cumulative, prepend=0.0)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def nearly_all_hit(
    histogram: Histogram, episode: Episode, prompt_len: float | None
) -> Reading | None:
    """Give the share of requests that still compute next to nothing: they were nearly all hit."""
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None or not prompt_len:
        return None
    edges = np.concatenate(([0.0], histogram.edges[:-1]))
    limit = _SMALL_SHARE * prompt_len
    old = float(np.interp(limit, edges, np.concatenate(([0.0], before[:-1]))))
    new = float(np.interp(limit, edges, np.concatenate(([0.0], after[:-1]))))
    return Reading(new, old, new) if old >= _ONCE_SMALL else None
