"""Amounts → rates that carry a meaning: interval hit rate by the best definition, residence time.

What the counters mean depends on the release (vllm-metrics reference, 3.1 to 3.7):

* from 0.16 ``prompt_tokens_by_source`` counts the first prefill of each request once: its share of
  local cache hits is the cleanest hit rate;
* before, ``hits / queries``: per scheduling attempt up to 0.26 (queries per prompt token far above
  1 means the rate is that of one blocked request), resumed requests included up to 0.11.0, in
  blocks up to 0.8.5;
* V0 exposes a lifetime average only. The average times the prompt tokens so far grows by the hits
  of an interval, so the interval rate is the difference quotient of (rate x tokens) over tokens.
"""

import numpy as np

# batch-ceiling.md 5.1: point estimate of the residence time, within 10 % in 12 of 13 load points.
RESIDENCE_FACTOR = 1.17


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide where there is something to divide by; NaN elsewhere; shape kept."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide two amounts over the same time; clipped to 0-1, NaN where either is unknown.

    An amount is what was added since the previous point of its own counter. Where a point of one
    counter is missing, what the other added by then belongs to the next point of both; before the
    first of both, since when either counts is not known.
    """
    result = np.full(part.shape, np.nan)
    both = np.flatnonzero(~np.isnan(part) & ~np.isnan(whole))
    if both.size:
        starts = np.concatenate((both[:1], both[:-1] + 1))
        added = (np.add.reduceat(np.nan_to_num(x[: both[-1] + 1]), starts) for x in (part, whole))
        result[both] = np.clip(ratio(*added), 0.0, 1.0)
        alone = slice(0, both[0])
        if not (np.isnan(part[alone]) & np.isnan(whole[alone])).all():
            result[both[0]] = np.nan
    return result


def per_second(amount: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
    """Turn amounts into rates per second."""
    return ratio(amount, elapsed)


def from_lifetime_average(average: np.ndarray, weight_so_far: np.ndarray) -> np.ndarray:
    """Recover the interval rate behind a lifetime average.

    Args:
        average: lifetime average per bin, 0-1, NaN where absent; shape (n,).
        weight_so_far: a cumulative quantity proportional to the lookups since the process
            started, NaN where that is unknown; it falls where another process begins; shape (n,).

    Returns:
        Interval rate, clipped to 0-1; NaN where the weight did not grow; shape (n,).
    """
    rates = np.full(average.shape, np.nan)
    known = np.flatnonzero(~np.isnan(average) & ~np.isnan(weight_so_far) & (average >= 0))
    if known.size < 2:
        return rates
    weight = weight_so_far[known]
    hits = average[known] * weight
    began = np.diff(weight) < 0
    grown = np.where(began, weight[1:], np.diff(weight))
    with np.errstate(invalid="ignore", divide="ignore"):
        interval = np.where(grown > 0, np.where(began, hits[1:], np.diff(hits)) / grown, np.nan)
    rates[known[1:]] = np.clip(interval, 0.0, 1.0)
    return rates


def residence(
    pool_tokens: np.ndarray,
    usage: np.ndarray,
    computed_per_s: np.ndarray,
    cached_per_s: np.ndarray,
    generated_per_s: np.ndarray,
) -> np.ndarray:
    """Estimate how long a released block survives (batch-ceiling.md 5.1).

    Args:
        pool_tokens: N, tokens; shape (n,).
        usage: referenced share of the pool, 0-1; shape (n,).
        computed_per_s: prompt tokens computed per second; shape (n,).
        cached_per_s: prompt tokens served from the cache per second; shape (n,).
        generated_per_s: tokens generated per second; shape (n,).

    Returns:
        Seconds; infinite while nothing is written; NaN where an input is missing; shape (n,).
    """
    free = pool_tokens * (1.0 - usage)
    written = computed_per_s + generated_per_s
    with np.errstate(invalid="ignore", divide="ignore"):
        high = free / written
        low = free / (written + cached_per_s)
        estimate: np.ndarray = np.minimum(high, RESIDENCE_FACTOR * np.sqrt(low * high))
    return estimate
