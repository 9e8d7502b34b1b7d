"""Log and metrics of one engine → the offset between their clocks, from what both report.

Every stats line says how many tokens per second were generated since the previous line, and how
many requests run and wait now. The metrics hold the same quantities as a counter and two gauges. At
the right offset the counter's growth over the interval of each line is what the line says; at any
other it is not, unless the traffic is too even to tell, which is then said.
"""

from dataclasses import dataclass

import numpy as np

MAX_OFFSET_S = 14 * 3600.0  # time zones reach from UTC-12 to UTC+14
_MIN_POINTS = 5
_MAX_POINTS = 240
# A second offset counts as a rival unless it fits clearly worse. Ratio of mean mismatches; guess.
_RIVAL_RATIO = 1.35
_QUARTER_HOUR = 900.0


@dataclass(frozen=True, slots=True)
class Reported:
    """What one side reports, on its own clock.

    Attributes:
        times: seconds, shape (n,), increasing.
        columns: by signal name, shape (n,) each; NaN where absent. Logs give ``generation_tps``,
            ``prompt_tps`` (means over the time since the previous line), ``running``, ``waiting``,
            ``kv_usage``. Metrics give cumulative ``generation_tokens``, ``prompt_tokens`` and the
            same gauges.
    """

    times: np.ndarray
    columns: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Match:
    """The offset found: log clock minus UTC, in seconds; `reason` when there is none."""

    offset_s: float | None
    points: int
    mismatch: float
    reason: str = ""


def match(log: Reported, metrics: Reported, near: float | None = None) -> Match:
    """Find how far the log's clock is ahead of the metrics' clock.

    Args:
        log: stats lines of one engine.
        metrics: samples of the same engine.
        near: search only within 90 s of this offset; None for all offsets up to 14 h.

    Returns:
        The best offset to a second, or none with the reason.
    """
    if log.times.size < _MIN_POINTS or metrics.times.size < _MIN_POINTS:
        return Match(None, int(log.times.size), np.inf, "fewer than five points on one side")
    log = _informative(log)
    step = float(np.median(np.diff(metrics.times)))
    span = max(4.0, min(step, 60.0))
    if near is not None:
        candidates = np.arange(near - 90.0, near + 91.0)
    else:
        low = log.times[0] - metrics.times[-1]
        high = log.times[-1] - metrics.times[0]
        low, high = max(low, -MAX_OFFSET_S - 120), min(high, MAX_OFFSET_S + 120)
        if low >= high:
            return Match(None, 0, np.inf, "log and metrics do not overlap within 14 hours")
        candidates = np.arange(np.floor(low), np.ceil(high) + 1, max(1.0, span / 4))
    scores, overlaps = _scores(log, metrics, candidates)
    enough = overlaps >= max(_MIN_POINTS, 0.5 * np.nanmax(overlaps))
    if not enough.any() or not np.isfinite(scores[enough]).any():
        return Match(None, 0, np.inf, "log and metrics have too few points in common")
    scores = np.where(enough, scores, np.inf)
    best = int(np.argmin(scores))
    fine = np.arange(candidates[best] - span, candidates[best] + span + 0.5, 0.5)
    fine_scores, _ = _scores(log, metrics, fine)
    fine_scores = np.where(np.isfinite(fine_scores), fine_scores, np.inf)
    offset = float(fine[int(np.argmin(fine_scores))])
    floor = float(min(fine_scores.min(), scores[best]))
    interval = float(np.median(np.diff(log.times)))
    far = np.abs(candidates - offset) > max(2 * interval, 2 * step, 5.0)
    rivals = scores[far]
    points = int(overlaps[best])
    if rivals.size and np.nanmin(rivals) < floor * _RIVAL_RATIO + 1e-9:
        return Match(None, points, floor, "the traffic is too even: several offsets fit alike")
    return Match(_rounded(offset, step), points, floor)


def _rounded(offset: float, step: float) -> float:
    """Prefer a whole quarter of an hour when it is within the resolution of the data."""
    quarter = round(offset / _QUARTER_HOUR) * _QUARTER_HOUR
    return quarter if abs(offset - quarter) <= max(3.0, min(step, 15.0)) else offset


def _informative(log: Reported) -> Reported:
    """Thin a long log to lines at which something changed most, spread over its whole length."""
    count = log.times.size
    if count <= _MAX_POINTS:
        return log
    change = np.zeros(count)
    for values in log.columns.values():
        scale = np.nanstd(values)
        if scale > 0:
            change[1:] += np.nan_to_num(np.abs(np.diff(values)) / scale)
    pieces = np.array_split(np.arange(count), _MAX_POINTS)
    keep = np.array([piece[int(np.argmax(change[piece]))] for piece in pieces if piece.size])
    # A mean over "since the previous line" needs that line: carry the interval along.
    previous = np.concatenate(([np.nan], log.times[:-1]))
    columns = {name: values[keep] for name, values in log.columns.items()}
    columns["_since"] = previous[keep]
    return Reported(log.times[keep], columns)


def _scores(
    log: Reported, metrics: Reported, candidates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give for each offset the mean mismatch (in standard deviations) and the points compared."""
    since = log.columns.get("_since")
    if since is None:
        since = np.concatenate(([np.nan], log.times[:-1]))
    total = np.zeros(candidates.shape)
    parts = np.zeros(candidates.shape)
    overlaps = np.zeros(candidates.shape)
    for chunk in np.array_split(np.arange(candidates.size), max(1, candidates.size // 2000)):
        ends = log.times[None, :] - candidates[chunk, None]
        starts = since[None, :] - candidates[chunk, None]
        inside = (ends >= metrics.times[0]) & (ends <= metrics.times[-1])
        overlaps[chunk] = inside.sum(axis=1)
        for rate, counter in (
            ("generation_tps", "generation_tokens"),
            ("prompt_tps", "prompt_tokens"),
        ):
            said, grown = log.columns.get(rate), metrics.columns.get(counter)
            if said is None or grown is None:
                continue
            seconds = ends - starts
            both = inside & (starts >= metrics.times[0]) & (seconds > 0) & (seconds < 120)
            seen = (_at(metrics, counter, ends) - _at(metrics, counter, starts)) / np.where(
                both, seconds, np.nan
            )
            _add(total, parts, chunk, said, seen, 1.0 if rate == "generation_tps" else 0.5)
        for gauge, weight in (("running", 1.0), ("waiting", 0.7), ("kv_usage", 0.7)):
            said, shown = log.columns.get(gauge), metrics.columns.get(gauge)
            if said is None or shown is None:
                continue
            seen = np.where(inside, _at(metrics, gauge, ends), np.nan)
            _add(total, parts, chunk, said, seen, weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(parts > 0, total / parts, np.inf), overlaps


def _add(
    total: np.ndarray,
    parts: np.ndarray,
    chunk: np.ndarray,
    said: np.ndarray,
    seen: np.ndarray,
    weight: float,
) -> None:
    scale = np.nanstd(said)
    if not scale > 0:
        return
    # Capped, so that one spike between two scrapes does not outvote the rest.
    error = np.minimum(np.abs(seen - said[None, :]) / scale, 2.0)
    counted = (~np.isnan(error)).sum(axis=1)
    enough = counted >= _MIN_POINTS
    sums = np.nansum(error, axis=1)
    total[chunk] += np.where(enough, weight * sums / np.maximum(counted, 1), 0.0)
    parts[chunk] += np.where(enough, weight, 0.0)


def _at(metrics: Reported, name: str, times: np.ndarray) -> np.ndarray:
    values = metrics.columns[name]
    known = ~np.isnan(values)
    if known.sum() < 2:
        return np.full(times.shape, np.nan)
    result: np.ndarray = np.interp(times, metrics.times[known], values[known])
    return result
