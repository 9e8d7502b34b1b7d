"""Log and metrics of one engine → the offset between their clocks, from what both report.

Every stats line says how many tokens per second were generated since the previous line, and how
many requests run and wait now. The metrics hold the same quantities as a counter and two gauges. At
the right offset the counter's growth over the interval of each line is what the line says; at any
other it is not, unless the traffic is too even to tell, which is then said.
"""

from dataclasses import dataclass

import numpy as np

MAX_OFFSET_S = 14 * 3600.0  # time zones reach from UTC-12 to UTC+14
_MIN_LINES = 5
_MIN_SCRAPES = 8
_MAX_POINTS = 240
# Evidence in nats. An offset must beat chance by this much, and any other offset by this much:
# odds of about 1 : 3,000 and 1 : 50 after a search over some 10,000 offsets. Guess, tried on
# recordings shifted, thinned and stretched.
_LEAST_EVIDENCE = 8.0
_LEAST_MARGIN = 4.0
# How far what the log says may differ from what Prometheus saw, as shares of the signal's own
# spread: snapshots are seconds apart, growth between scrapes is interpolated. The blur that
# explains most counts. And the share of points that may be anything at all.
_BLURS = (0.1, 0.25, 0.6)
_OUTLIERS = 0.1
_QUARTER_HOUR = 900.0
# Zones are whole quarters of an hour, and matches on recordings were off by up to 2 s.
_SNAP_S = 2.0
# vLLM prints whole seconds: a stamp is half a second early on average.
_CUT_FRACTION_S = 0.5
# No offset is told apart from one this much off by snapshots a scrape or two apart.
_FINEST_S = 3.0
# Scrapes farther apart than this many usual steps leave a gap.
_GAP_STEPS = 3.0


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
    """The offset found: log clock minus UTC, in seconds; `reason` when there is none.

    `points` is the number of stats lines compared, `evidence` how much better than chance (nats).
    """

    offset_s: float | None
    points: int
    evidence: float
    reason: str = ""


def match(log: Reported, metrics: Reported, near: float | None = None) -> Match:
    """Find how far the log's clock is ahead of the metrics' clock.

    Args:
        log: stats lines of one engine.
        metrics: samples of the same engine.
        near: search only within 90 s of this offset; None for all offsets up to 14 h.

    Returns:
        The best offset, good to one interval of stats lines, or none with the reason.
    """
    if log.times.size < _MIN_LINES or metrics.times.size < _MIN_SCRAPES:
        reason = f"fewer than {_MIN_LINES} stats lines or {_MIN_SCRAPES} scrapes to compare"
        return Match(None, int(log.times.size), 0.0, reason)
    step = float(np.median(np.diff(metrics.times)))
    log = _informative(_widened(log, 2.0 * step))
    span = max(4.0, min(step, 60.0))
    if near is not None:
        candidates = np.arange(near - 90.0, near + 91.0)
    else:
        low = log.times[0] - metrics.times[-1]
        high = log.times[-1] - metrics.times[0]
        low, high = max(low, -MAX_OFFSET_S - 120), min(high, MAX_OFFSET_S + 120)
        if low >= high:
            return Match(None, 0, 0.0, "log and metrics do not overlap within 14 hours")
        candidates = np.arange(np.floor(low), np.ceil(high) + 1, max(1.0, span / 4))
    evidence = _evidence(log, metrics, candidates)
    best = int(np.argmax(evidence))
    if evidence[best] < _LEAST_EVIDENCE:
        reason = "the traffic is too even, or log and metrics have too little in common"
        return Match(None, 0, float(evidence[best]), reason)
    fine = np.arange(candidates[best] - span, candidates[best] + span + 0.5, 0.5)
    gained = _evidence(log, metrics, fine)
    offset = float(fine[int(np.argmax(gained))])
    interval = float(np.median(np.diff(log.times)))
    tried, proven = np.concatenate((candidates, fine)), np.concatenate((evidence, gained))
    far = np.abs(tried - offset) > max(interval, _FINEST_S)
    top = float(proven.max())
    points = int(_inside(log, metrics, offset))
    if far.any() and float(proven[far].max()) > top - _LEAST_MARGIN:
        sparse = step > 2.0 * interval
        reason = "the scrapes are too far apart" if sparse else "the traffic is too even"
        return Match(None, points, top, f"{reason}: several offsets fit alike")
    if (log.times == np.floor(log.times)).all():
        offset += _CUT_FRACTION_S
    return Match(whole_zone(offset), points, top)


def _inside(log: Reported, metrics: Reported, offset: float) -> int:
    times = log.times - offset
    return int(((times >= metrics.times[0]) & (times <= metrics.times[-1])).sum())


def whole_zone(offset: float) -> float:
    """Take an offset for the whole quarter of an hour that it nearly is."""
    quarter = round(offset / _QUARTER_HOUR) * _QUARTER_HOUR
    return quarter if abs(offset - quarter) <= _SNAP_S else offset


def _widened(log: Reported, least_s: float) -> Reported:
    """Let each line's throughput span at least a given time, by joining it with earlier lines.

    Between two scrapes a counter's growth can only be interpolated; over two or more scrapes that
    hardly matters. The start of each span is kept as ``_since``; a pause in the log ends spans.
    """
    times = log.times
    usual = float(np.median(np.diff(times)))
    back = np.arange(times.size) - 1
    while True:
        short = (back > 0) & (times - times[np.maximum(back, 0)] < least_s)
        if not short.any():
            break
        back = np.where(short, back - 1, back)
    valid = back >= 0
    since = np.where(valid, times[np.maximum(back, 0)], np.nan)
    since = np.where(times - since > max(3.0 * usual, 2.0 * least_s), np.nan, since)
    columns = dict(log.columns)
    for name in ("generation_tps", "prompt_tps"):
        if name in columns:
            amounts = np.nan_to_num(columns[name][1:]) * np.diff(times)
            so_far = np.concatenate(([0.0], np.cumsum(amounts)))
            grown = so_far - so_far[np.maximum(back, 0)]
            columns[name] = np.where(np.isnan(since), np.nan, grown / (times - since))
    columns["_since"] = since
    return Reported(times, columns)


def _informative(log: Reported) -> Reported:
    """Thin a long log to lines at which something changed most, spread over its whole length."""
    count = log.times.size
    if count <= _MAX_POINTS:
        return log
    change = np.zeros(count)
    for name, values in log.columns.items():
        scale = np.nanstd(values)
        if scale > 0 and name != "_since":
            change[1:] += np.nan_to_num(np.abs(np.diff(values)) / scale)
    pieces = np.array_split(np.arange(count), _MAX_POINTS)
    keep = np.array([piece[int(np.argmax(change[piece]))] for piece in pieces if piece.size])
    columns = {name: values[keep] for name, values in log.columns.items()}
    return Reported(log.times[keep], columns)


def _evidence(log: Reported, metrics: Reported, candidates: np.ndarray) -> np.ndarray:
    """Give for each offset how much better it explains the log than chance does, in nats.

    A line whose value is what the metrics show most of the time proves little, a rare value proves
    much: each point counts by the likelihood of its error over the likelihood of the same value at
    a random time.
    """
    since = log.columns["_since"]
    total = np.zeros(candidates.shape)
    width = float(np.nanmedian(log.times - since))
    for chunk in np.array_split(np.arange(candidates.size), max(1, candidates.size // 2000)):
        ends = log.times[None, :] - candidates[chunk, None]
        starts = since[None, :] - candidates[chunk, None]
        inside = (ends >= metrics.times[0]) & (ends <= metrics.times[-1])
        for rate, counter in (
            ("generation_tps", "generation_tokens"),
            ("prompt_tps", "prompt_tokens"),
        ):
            said = log.columns.get(rate)
            if said is None or counter not in metrics.columns:
                continue
            seconds = ends - starts
            both = inside & (starts >= metrics.times[0]) & (seconds > 0) & (seconds < 120)
            grown = _at(metrics, counter, ends) - _at(metrics, counter, starts)
            seen = grown / np.where(both, seconds, np.nan)
            random = metrics.times[metrics.times - width >= metrics.times[0]]
            usual = (_at(metrics, counter, random) - _at(metrics, counter, random - width)) / width
            total[chunk] += _gain(said, seen, usual)
        for gauge in ("running", "waiting", "kv_usage"):
            said = log.columns.get(gauge)
            if said is None or gauge not in metrics.columns:
                continue
            seen = np.where(inside, _at(metrics, gauge, ends), np.nan)
            total[chunk] += _gain(said, seen, metrics.columns[gauge])
    return total


def _gain(said: np.ndarray, seen: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Give the evidence of one signal per offset.

    Args:
        said: what the log says; shape (n,).
        seen: what the metrics show at each offset; shape (k, n), NaN where they show nothing.
        usual: what the metrics show at any time; shape (m,).

    Returns:
        Nats by offset; shape (k,).
    """
    usual = usual[~np.isnan(usual)]
    spread = float(np.std(usual)) if usual.size else 0.0
    if not spread > 0:
        return np.zeros(seen.shape[0])
    gains: list[np.ndarray] = []
    for blur in _BLURS:
        width = blur * spread
        chance = np.exp(-np.abs(said[:, None] - usual[None, :]) / width).mean(axis=1)
        chance = np.maximum(chance, 1.0 / (usual.size + 1))
        match = np.exp(-np.abs(seen - said[None, :]) / width)
        with np.errstate(invalid="ignore"):
            gain = np.log((1.0 - _OUTLIERS) * match / chance[None, :] + _OUTLIERS)
        gains.append(np.nansum(gain, axis=1))
    # A signal that moves faster than it is sampled tells nothing at any offset: then it abstains.
    told: np.ndarray = np.logaddexp(np.max(np.stack(gains), axis=0), 0.0) - np.log(2.0)
    return told


def _at(metrics: Reported, name: str, times: np.ndarray) -> np.ndarray:
    values = metrics.columns[name]
    known = ~np.isnan(values)
    if known.sum() < 2:
        return np.full(times.shape, np.nan)
    stamps = metrics.times[known]
    result: np.ndarray = np.interp(times, stamps, values[known])
    # Nothing is known of the time in which nothing was scraped, a restart for example.
    gaps = np.diff(stamps)
    wide = gaps > _GAP_STEPS * float(np.median(gaps))
    if wide.any():
        after = np.clip(np.searchsorted(stamps, times), 1, stamps.size - 1)
        result = np.where(wide[after - 1], np.nan, result)
    return result
