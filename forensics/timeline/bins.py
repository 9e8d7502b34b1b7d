"""Points → regular bins: gauges as last value, counters as growth."""

import numpy as np

from forensics.timeline.recordings import Track

# A range query may be asked with a finer step than the scrapes: then counters of a busy server
# stand still in most steps and move in every k-th.
_BUSY_SHARE = 0.1
MAX_BINS = 200_000
# Points this far from the others are stray (a clock that was not set yet): no recording of one
# incident pauses for a month (a guess; asked only where the bins would be too many).
_STRAY_GAP_S = 30 * 86_400.0


def true_step(step: float, moving: Track | None) -> float:
    """Correct a step that is finer than the scrape interval behind it.

    Args:
        step: spacing of the points, seconds.
        moving: a counter that grows whenever the server works (generated tokens).
    """
    if moving is None or moving.times.size < 12 or step <= 0:
        return step
    changed = np.flatnonzero(np.diff(moving.values) != 0)
    if changed.size < max(6, _BUSY_SHARE * moving.times.size):
        return step
    gaps = np.diff(changed)
    factor = int(np.median(gaps)) if gaps.size else 1
    # Only a rhythm counts: an idle server also stands still, but not in equal steps.
    if factor >= 2 and float(np.mean(gaps % factor == 0)) > 0.9:
        return step * factor
    return step


def bin_times(start: float, end: float, step: float) -> np.ndarray:
    """Give the bins' times from start to end; shape (n,)."""
    count = min(MAX_BINS, int(np.floor((end - start) / step + 0.5)) + 1)
    return start + step * np.arange(count)


def fitted(times: np.ndarray, step: float) -> tuple[float, float, float]:
    """Give start, end and step of bins that hold the points and are not too many.

    Where they are, stray points are left out first, and then each bin is made wider.

    Args:
        times: the points, UTC seconds, in any order; shape (n,), n at least 1.
        step: what a bin is to span, seconds.
    """
    start, end = float(times.min()), float(times.max())
    if (end - start) / step < MAX_BINS - 1:
        return start, end, step
    times = np.sort(times)
    pieces = np.split(times, np.flatnonzero(np.diff(times) > _STRAY_GAP_S) + 1)
    kept = max(pieces, key=len)
    start, end = float(kept[0]), float(kept[-1])
    return start, end, step * max(1.0, np.ceil((end - start) / step / (MAX_BINS - 1)))


def bin_index(times: np.ndarray, start: float, step: float, count: int) -> np.ndarray:
    """Give the bin each time falls into (nearest); -1 when outside."""
    index = np.floor((times - start) / step + 0.5).astype(np.int64)
    return np.where((index >= 0) & (index < count), index, -1)


def last_values(track: Track, start: float, step: float, count: int) -> np.ndarray:
    """Give the last value in each bin, NaN where there is none; shape (count,)."""
    result = np.full(count, np.nan)
    index = bin_index(track.times, start, step, count)
    inside = index >= 0
    result[index[inside]] = track.values[inside]  # times increase, so the last one stays
    return result


def growth(values: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give what a counter grew by since the previous bin in which its recording had anything.

    A value below the previous one is a reset: the counter then grew by its new value. A series that
    appears while its recording already ran (label sets are created with their first event) grew
    from zero.

    Args:
        values: counter value per bin, NaN where absent; shape (n,).
        present: whether the recording had any sample in the bin; shape (n,).

    Returns:
        Growth per bin (NaN where unknown) and whether the bin shows a reset; shape (n,) each.
    """
    amounts = np.full(values.shape, np.nan)
    resets = np.zeros(values.shape, dtype=bool)
    known = np.flatnonzero(~np.isnan(values))
    if not known.size:
        return amounts, resets
    now = values[known]
    before = np.concatenate(([np.nan], now[:-1]))
    steps = now - before
    fell = steps < 0
    steps = np.where(fell, now, steps)
    amounts[known] = steps
    resets[known] = fell
    first = known[0]
    earlier = np.flatnonzero(present[:first])
    if earlier.size:
        amounts[first] = values[first]
        zero = earlier[1:]
        amounts[zero] = 0.0
    return amounts, resets
