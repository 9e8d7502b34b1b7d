"""A noisy rate over time → pieces of constant level, by penalised least squares.

Each interval's rate is weighted by the tokens behind it. The noise is taken from successive
differences, not from the binomial formula: block hits are clustered, and 5 to 50 times the binomial
variance is normal (diagnosis.md, 3.3). Each further piece costs 3 ln n (same source).
"""

from dataclasses import dataclass

import numpy as np

_PENALTY = 3.0
_MOST_POINTS = 1200
SHORTEST = 4  # points of the shortest piece: what a step needs to stand out from noise (guess)
# Intervals of a steady rate still wander by about this much (real recordings, 2 s scrapes).
_FLOOR_SD = 0.01


@dataclass(frozen=True, slots=True)
class Segment:
    """Points `first` to `last` (inclusive) at one level.

    Attributes:
        mean: weighted mean of the rate.
        weight: tokens behind it.
        error: standard error of the mean, from the noise of the whole series.
    """

    first: int
    last: int
    mean: float
    weight: float
    error: float


def noise_per_weight(rate: np.ndarray, weight: np.ndarray) -> float:
    """Estimate the variance of one interval's rate times its weight, robust against steps.

    Args:
        rate: shape (n,), without NaN.
        weight: shape (n,), positive.
    """
    if rate.size < 3:
        return float(np.mean(weight)) * 0.05**2 if rate.size else 1.0
    squared = np.diff(rate) ** 2 / (1.0 / weight[1:] + 1.0 / weight[:-1])
    middle = float(np.median(squared)) / 0.4549  # median of a chi-squared with one degree
    spread = float(np.mean(np.minimum(squared, 9 * middle))) if middle > 0 else 0.0
    floor = float(np.median(weight)) * _FLOOR_SD**2
    return max(middle, spread, floor)


def segments(
    rate: np.ndarray, weight: np.ndarray, shortest: int = SHORTEST, noise: float | None = None
) -> list[Segment]:
    """Cut a weighted rate into pieces of constant level.

    Args:
        rate: interval rates, shape (n,), without NaN.
        weight: tokens behind each, shape (n,), positive.
        shortest: fewest points of a piece.
        noise: variance of an interval's rate times its weight; None to read it off the series.

    Returns:
        Pieces in order that cover all points; one piece when nothing changed.
    """
    count = rate.size
    if count == 0:
        return []
    noise = noise_per_weight(rate, weight) if noise is None else noise
    fold = max(1, -(-count // _MOST_POINTS))
    cuts = np.arange(0, count, fold)
    total_w = np.add.reduceat(weight, cuts)
    total_h = np.add.reduceat(rate * weight, cuts)
    total_s = np.add.reduceat(rate**2 * weight, cuts)
    ends = _best_cuts(total_w, total_h, total_s, noise, max(1, -(-shortest // fold)))
    found: list[Segment] = []
    begin = 0
    for end in ends:
        first = int(cuts[begin])
        last = int(cuts[end]) - 1 if end < cuts.size else count - 1
        w = weight[first : last + 1]
        sum_w = float(w.sum())
        mean = float((rate[first : last + 1] * w).sum() / sum_w)
        found.append(Segment(first, last, mean, sum_w, float(np.sqrt(noise / sum_w))))
        begin = end
    return found


def _best_cuts(
    w: np.ndarray, h: np.ndarray, s: np.ndarray, noise: float, shortest: int
) -> list[int]:
    """Give the ends (exclusive) of the optimal pieces, by dynamic programming in O(n^2)."""
    count = w.size
    cw, ch, cs = (np.concatenate(([0.0], np.cumsum(x))) for x in (w, h, s))
    penalty = _PENALTY * np.log(max(count, 2))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    back = np.zeros(count + 1, dtype=np.int64)
    for end in range(shortest, count + 1):
        starts = np.arange(0, end - shortest + 1)
        starts = starts[np.isfinite(best[starts])]
        weight = cw[end] - cw[starts]
        square = cs[end] - cs[starts] - (ch[end] - ch[starts]) ** 2 / np.maximum(weight, 1e-12)
        cost = best[starts] + square / noise + penalty
        pick = int(np.argmin(cost))
        best[end] = cost[pick]
        back[end] = starts[pick]
    if not np.isfinite(best[count]):
        return [count]
    ends: list[int] = []
    at = count
    while at > 0:
        ends.append(at)
        at = int(back[at])
    return ends[::-1]
