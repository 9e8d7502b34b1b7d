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
LEVELS, SPREAD, SCRAPES = 4, 6.0, 4
"""A window counts as a sweep with four levels of load over a factor of six, four scrapes each."""
CONTIGUOUS = 0.7
"""… each held in one go: load that wanders is not a sweep."""


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
    level = np.full(times.size, -1)
    level[load > 0] = np.round(np.log2(np.maximum(load[load > 0], 0.5))).astype(int)
    runs = _longest_runs(level)
    held = {
        name: run
        for name, run in runs.items()
        if run[1] - run[0] >= SCRAPES
        and run[1] - run[0] >= CONTIGUOUS * np.count_nonzero(level == name)
    }
    if len(held) < LEVELS or len(held) < CONTIGUOUS * len([n for n in runs if n >= 0]):
        return None
    rows = []
    for begin, end in sorted(held.values()):
        mean = float(load[begin:end].mean())
        rows.append(_row(timeline, round(mean, 1), float(times[begin]), float(times[end - 1])))
    settings = [row.setting for row in rows]
    rising = sum(1 for a, b in pairwise(settings) if b > a)
    # A ramp of one incident goes up once as well; a sweep visits levels in order and holds each.
    if max(settings) < SPREAD * min(settings) or rising < CONTIGUOUS * (len(settings) - 1):
        return None
    return compare(rows, "requests in flight", targets)


def of_engines(timelines: Sequence[EngineTimeline], targets: Targets | None = None) -> Sweep | None:
    """Find the sweep in what was read, if there is one: over runs, else within one window."""
    found = from_runs(timelines, targets)
    if found is None and len(timelines) == 1:
        found = from_windows(timelines[0], targets)
    return found


def _longest_runs(level: np.ndarray) -> dict[int, tuple[int, int]]:
    """Return for each level its longest stretch, short interruptions (two scrapes) bridged."""
    runs: dict[int, tuple[int, int]] = {}
    begin: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, name in enumerate(level.tolist()):
        if name < 0:
            continue
        if name not in begin or place - last[name] > 3:
            begin[name] = place
        last[name] = place
        known = runs.get(name, (0, 0))
        if place + 1 - begin[name] > known[1] - known[0]:
            runs[name] = (begin[name], place + 1)
    return runs


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
