"""Timelines or result files → a sweep: one row per setting, compared (`sweep_compare`).

A sweep is several runs at different `max_num_seqs`, each its own epoch, or one window in which the
load was stepped: each level held in one go. A ramp inside an incident is neither.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from forensics.ceiling.bench_results import read_results
from forensics.ceiling.records import Sweep, SweepRow
from forensics.ceiling.sweep_compare import Targets, compare
from forensics.timeline import EngineTimeline, Histogram

WARM_SHARE = 0.3
"""First part of a run that is left out: caches fill and clients start."""
LEVELS, SPREAD, SCRAPES = 4, 6.0, 5
"""A window counts as a sweep with four levels of load over a factor of six, five scrapes each."""
ANSWERED = 15.0
"""Finished requests a level needs for its rates to mean anything."""
STEP = 1.3
"""Neighbouring levels differ by at least this factor; nearer ones are one level."""
IN_ORDER = 0.75
"""Share of the steps that go the same way: load that wanders is not a sweep."""
SEARCHED = 400
"""Scrapes that are searched for levels; longer windows are thinned to that many."""


def from_files(paths: Sequence[str | Path], targets: Targets | None = None) -> Sweep | None:
    """Compare runs whose results benchmark tools wrote; None when there are not two of them."""
    rows: list[SweepRow] = []
    names: list[str] = []
    for path in paths:
        for name, row in read_results(Path(path)):
            names.append(name)
            rows.append(row)
    return compare(rows, max(set(names), key=names.count), targets) if rows else None


def from_runs(timelines: Sequence[EngineTimeline], targets: Targets | None = None) -> Sweep | None:
    """Compare runs of a server, each in its own epoch, at different `max_num_seqs`."""
    rows = []
    for timeline in timelines:
        for epoch in timeline.diary.epochs:
            if epoch.max_num_seqs is None:
                continue
            times = timeline.grid["time"].to_numpy()
            start = epoch.start if epoch.start is not None else -np.inf
            end = epoch.end if epoch.end is not None else np.inf
            busy = _busy(timeline, (times >= start) & (times <= end))
            if busy is not None:
                rows.append(_row(timeline, float(epoch.max_num_seqs), *busy))
    if len({row.setting for row in rows}) < 3:
        return None
    return compare(rows, "max_num_seqs", targets)


def from_windows(timeline: EngineTimeline, targets: Targets | None = None) -> Sweep | None:
    """Compare the levels of load in one window; None when the load was not stepped."""
    grid = timeline.grid
    if not timeline.has("running"):
        return None
    times = grid["time"].to_numpy()
    load = np.nan_to_num(grid["running"].cast(float).to_numpy())
    load = load + np.nan_to_num(grid["waiting"].cast(float).to_numpy())
    rows = [
        _row(timeline, round(float(load[begin:end].mean()), 1), times[begin], times[end - 1])
        for begin, end in _levels(load)
    ]
    rows = [row for row in rows if row.requests is None or row.requests >= ANSWERED]
    settings = [row.setting for row in rows]
    if len(rows) < LEVELS or max(settings) < SPREAD * min(settings):
        return None
    rising = sum(1 for a, b in pairwise(settings) if b > a) / (len(settings) - 1)
    if max(rising, 1 - rising) < IN_ORDER:
        return None
    return compare(rows, "requests in flight", targets)


def of_engines(timelines: Sequence[EngineTimeline], targets: Targets | None = None) -> Sweep | None:
    """Find the sweep in what was read, if there is one: over runs, else within one window."""
    found = from_runs(timelines, targets)
    if found is None and len(timelines) == 1:
        found = from_windows(timelines[0], targets)
    return found


def _levels(load: np.ndarray) -> list[tuple[int, int]]:
    """Cut a load into stretches of one level each: (first, one past last) of those long enough.

    Least squares on the logarithm, with a penalty per cut of three times the noise times the
    logarithm of the length (as for change points elsewhere); noise from successive differences.
    """
    busy = np.flatnonzero(load > 0)
    if busy.size < LEVELS * SCRAPES:
        return []
    thin = max(1, -(-busy.size // SEARCHED))
    places = busy[::thin]
    values = np.log2(np.maximum(load[places], 0.5))
    noise = float(np.median(np.abs(np.diff(values)))) / 0.954
    penalty = 3 * max(noise, 0.1) ** 2 * np.log(values.size)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    squares = np.concatenate(([0.0], np.cumsum(values * values)))
    least = max(2, SCRAPES // thin)
    count = values.size
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    cut = np.zeros(count + 1, dtype=int)
    for end in range(least, count + 1):
        begins = np.arange(0, end - least + 1)
        length = end - begins
        error = squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / length
        total = best[begins] + error + penalty
        cut[end] = int(total.argmin())
        best[end] = total[cut[end]]
    found: list[tuple[int, int]] = []
    end = count
    while end > 0 and np.isfinite(best[end]):
        found.insert(0, (int(cut[end]), end))
        end = int(cut[end])
    return [
        (int(places[begin]), int(places[end - 1]) + 1)
        for begin, end in _apart(found, values)
        if end - begin >= least
    ]


def _apart(found: list[tuple[int, int]], values: np.ndarray) -> list[tuple[int, int]]:
    """Join neighbours that differ by less than a step."""
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined:
            before = values[slice(*joined[-1])].mean()
            if abs(values[begin:end].mean() - before) < np.log2(STEP):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((begin, end))
    return joined


def _busy(timeline: EngineTimeline, inside: np.ndarray) -> tuple[float, float] | None:
    """Return the part of a run in which it was under load, its warm-up left out."""
    times = timeline.grid["time"].to_numpy()
    running = np.nan_to_num(timeline.grid["running"].cast(float).to_numpy())
    at_work = np.flatnonzero(inside & (running > 0))
    if at_work.size < SCRAPES:
        return None
    start, end = float(times[at_work[0]]), float(times[at_work[-1]])
    return start + WARM_SHARE * (end - start), end


def _row(timeline: EngineTimeline, setting: float, start: float, end: float) -> SweepRow:
    grid = timeline.grid
    times = grid["time"].to_numpy()
    inside = (times >= start) & (times <= end)

    def column(name: str) -> np.ndarray:
        values: np.ndarray = grid[name].cast(float).to_numpy()[inside]
        return values

    def total(name: str) -> float | None:
        values = column(name)
        return float(np.nansum(values)) if np.isfinite(values).any() else None

    rate, weight = column("hit_rate"), column("hit_weight")
    both = np.isfinite(rate) & np.isfinite(weight) & (weight > 0)
    elapsed = float(np.nansum(column("elapsed_s")))
    generated = total("generation_tokens")
    throughput = generated / elapsed if generated is not None and elapsed > 0 else None
    if throughput is None and np.isfinite(column("generation_tps")).any():
        throughput = float(np.nanmean(column("generation_tps")))
    usage = column("kv_usage")
    waits = timeline.histograms.get("ttft_s")
    mean_wait = column("ttft_s")
    middle = _quantile(waits, start, end, 0.5)
    if middle is None and np.isfinite(mean_wait).any():
        middle = float(np.nanmedian(mean_wait))
    return SweepRow(
        setting=setting,
        hit_rate=float(np.average(rate[both], weights=weight[both])) if both.any() else None,
        ttft_p50_s=middle,
        ttft_p99_s=_quantile(waits, start, end, 0.99),
        throughput_tok_s=throughput,
        preemptions=total("preemptions"),
        kv_usage=float(np.nanmean(usage)) if np.isfinite(usage).any() else None,
        requests=total("finished"),
    )


def _quantile(histogram: Histogram | None, start: float, end: float, share: float) -> float | None:
    if histogram is None:
        return None
    counts = histogram.over(start, end)
    if not np.isfinite(counts).all() or counts[-1] <= 0:
        return None
    # Above the last finite edge nothing is known but that it is above: that edge, a lower bound.
    edges = np.concatenate(([0.0], histogram.edges[:-1], histogram.edges[-2:-1]))
    return float(np.interp(share * counts[-1], np.concatenate(([0.0], counts)), edges))


__all__ = ["Targets", "compare", "from_files", "from_runs", "from_windows", "of_engines"]
