"""Evidence on UTC and the diary → the timeline of each engine."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl

from forensics.diary import EngineDiary
from forensics.diary.engines import EngineKey, EngineMap
from forensics.evidence import Evidence, Place
from forensics.timeline.bins import bin_index
from forensics.timeline.derived import derive
from forensics.timeline.grid import (
    SCHEMA,
    Columns,
    columns_from_tracks,
    histograms_from_tracks,
)
from forensics.timeline.logs import (
    add_swapped_out,
    columns_from_log,
    counted_lines,
    counted_origin,
    lay_amounts,
)
from forensics.timeline.marks import in_order, marks_of
from forensics.timeline.prompt_meaning import add_computed
from forensics.timeline.recordings import read_tracks
from forensics.timeline.records import SIGNALS, EngineTimeline, Histogram, Lines, Mark, Origin

_LOG_ONLY = ("logged_hit_rate", "aborted", "rejected", "preemption_lower_bound", "swapped")
# Fewer scrapes than this make no timeline of their own (the least that a rule judges, and a half).
_FEW_SCRAPES = 12
# The metrics leave out part of what the log saw: so many stats lines (what a rule needs at least),
# and so large a part of them (guess: below it, the finer steps of the metrics are worth more).
_OUTSIDE_LINES = 8
_OUTSIDE_PART = 0.2
# Fewer failed scrapes at the end are an accident. Guess.
_FAILED_SCRAPES = 3
_AMOUNTS = ("aborted", "rejected", "preemption_lower_bound")


def build_engine(
    evidence: Evidence, engines: EngineMap, key: EngineKey, diary: EngineDiary
) -> EngineTimeline:
    """Build one engine's timeline.

    Args:
        evidence: rows whose stamps are UTC.
        engines: which rows belong together.
        key: the engine.
        diary: its epochs.
    """
    events = engines.of_rows(evidence, evidence.events, key)
    tracks = read_tracks(evidence, engines.of_series(evidence, key))
    metrics = columns_from_tracks(tracks)
    logs = columns_from_log(events, evidence.sources)
    histograms: dict[str, Histogram] = {}
    if logs is not None:
        _note_starts(logs, diary)
        add_computed(logs, diary)
        derive(logs, _pool_tokens(diary, logs))
    main = metrics or logs
    if metrics is not None and logs is not None and _sparse(metrics, logs):
        laid = columns_from_tracks(tracks, like=logs)
        metrics = main = _completed(logs, laid, diary) if laid is not None else logs
        histograms = histograms_from_tracks(tracks, metrics)
    elif metrics is not None:
        if logs is not None:
            _borrow(metrics, logs)
        _borrow_counts(metrics, events)
        add_swapped_out(metrics)
        derive(metrics, _pool_tokens(diary, metrics))
        histograms = histograms_from_tracks(tracks, metrics)
    marks = list(marks_of(events, diary))
    if metrics is not None:
        marks += _reset_marks(metrics, marks)
        marks += _unanswered(evidence, engines.of_series(evidence, key))
    empty = pl.DataFrame(schema=SCHEMA)
    return EngineTimeline(
        engine=key.name,
        instance=key.server or None,
        step_s=main.step if main else 0.0,
        grid=main.frame() if main else empty,
        log_grid=logs.frame() if logs else empty,
        origins={
            name: origin
            for name, origin in sorted((main.origins if main else {}).items())
            if name in SIGNALS
        },
        marks=in_order(marks),
        diary=diary,
        histograms=histograms,
        seen_until=_last_stamp(events),
        lines=_lines(events, (main.origins if main else {}).values()),
    )


def _note_starts(logs: Columns, diary: EngineDiary) -> None:
    """Note where a lifetime average begins anew, and whether the log begins with its process."""
    times = logs.times[logs.present]
    starts = [epoch.start for epoch in diary.epochs if epoch.start is not None]
    begins = bool(starts) and starts[0] <= times[0]
    logs.values["_prompt_base"] = np.array([0.0 if begins else np.nan])
    for start in starts:
        later = np.flatnonzero(logs.present & (logs.times > start))
        if later.size and start > times[0]:
            logs.resets[later[0]] = True


def _sparse(metrics: Columns, logs: Columns) -> bool:
    """Tell whether a few scrapes, or scrapes of part of the time, stand beside a fuller log."""
    scrapes = int(metrics.present.sum())
    if scrapes < _FEW_SCRAPES and int(logs.present.sum()) >= 2 * scrapes:
        return True
    unseen = _outside(logs, metrics)
    return (
        unseen >= max(_OUTSIDE_LINES, _OUTSIDE_PART * int(logs.present.sum()))
        and _outside(metrics, logs) < _OUTSIDE_PART * scrapes
    )


def _outside(columns: Columns, others: Columns) -> int:
    """Count the rows before the first and after the last of others, a step of either apart."""
    margin = max(columns.step, others.step)
    times, window = columns.times[columns.present], others.times[others.present]
    return int(((times < window[0] - margin) | (times > window[-1] + margin)).sum())


def _completed(logs: Columns, laid: Columns, diary: EngineDiary) -> Columns:
    """Add to a log's columns what a few scrapes know beside it: amounts between two scrapes.

    What the stats lines report stays theirs, as they report it at every point. Only how many prompt
    tokens came between two scrapes is the counter's to say, and the lines tell when: from 0.16.0 on
    a line leaves out what was found in the cache, and the counts beside it do not.
    """
    derive(laid, _pool_tokens(diary, laid))
    both = replace(logs, values=dict(logs.values), origins=dict(logs.origins), resets=laid.resets)
    if "prompt_tokens" in logs.values and "prompt_tokens" in laid.values:
        both.values["prompt_tokens"] = _as_counted(
            logs.get("prompt_tokens"), laid.get("prompt_tokens"), np.flatnonzero(laid.present)
        )
    for name, values in laid.values.items():
        if name not in both.values or np.isnan(both.values[name]).all():
            both.values[name] = values
            if name in laid.origins:
                both.origins[name] = laid.origins[name]
    return both


def _as_counted(lines: np.ndarray, counted: np.ndarray, scrapes: np.ndarray) -> np.ndarray:
    """Scale what lines report so that it sums to what a counter grew by between two scrapes.

    Args:
        lines: amount per bin by the log, shape (n,).
        counted: growth of the counter since the scrape before, NaN where unknown, shape (n,).
        scrapes: indices of the bins with a scrape, ascending.
    """
    scaled = lines.copy()
    for first, last in pairwise(scrapes):
        inside = slice(first + 1, last + 1)
        total = float(np.nansum(lines[inside]))
        if np.isnan(counted[last]):
            continue
        if total > 0:
            scaled[inside] *= counted[last] / total
        else:
            scaled[last] = counted[last]
    return scaled


def _lines(events: pl.DataFrame, origins: Iterable[Origin]) -> dict[str, Lines]:
    """Give where the lines stand that signals were read from, by kind of line."""
    found: dict[str, Lines] = {}
    for kind in sorted({origin.series for origin in origins if origin.clock == "log"}):
        rows = events.filter((pl.col("kind") == kind) & pl.col("stamp").is_not_null())
        if rows.height:
            rows = rows.sort("stamp", "source", "offset")
            found[kind] = Lines(*(rows[name].to_numpy() for name in ("stamp", "source", "offset")))
    return found


def _last_stamp(events: pl.DataFrame) -> float | None:
    last = events["stamp"].max()
    return float(last) if isinstance(last, int | float) else None


def _pool_tokens(diary: EngineDiary, columns: Columns) -> np.ndarray | None:
    sizes = np.full(columns.count, np.nan)
    for epoch in diary.epochs:
        if epoch.pool.tokens:
            begin = epoch.start if epoch.start is not None else -np.inf
            sizes[columns.times >= begin] = epoch.pool.tokens
    return sizes if not np.isnan(sizes).all() else None


def _borrow(metrics: Columns, logs: Columns) -> None:
    """Lay signals that only the log has onto the metrics' bins."""
    index = bin_index(logs.times, metrics.start, metrics.step, metrics.count)
    for name in (*SIGNALS, "_lifetime"):
        if name not in logs.values or name in metrics.values:
            continue
        if name not in _LOG_ONLY and name not in ("_lifetime", "kv_usage", "running", "waiting"):
            continue
        if name == "_lifetime" and ("hits" in metrics.values or "cached_tokens" in metrics.values):
            continue
        laid = np.full(metrics.count, np.nan)
        for place, value in zip(index, logs.values[name], strict=True):
            if place < 0 or np.isnan(value):
                continue
            laid[place] = np.nansum([laid[place], value]) if name in _AMOUNTS else value
        if name in _AMOUNTS:
            laid = np.where(metrics.present & np.isnan(laid), 0.0, laid)
        metrics.values[name] = laid
        metrics.origins[name] = logs.origins[name]


def _borrow_counts(metrics: Columns, events: pl.DataFrame) -> None:
    """Count single lines (aborts, refusals) straight onto the metrics' bins.

    Metrics hardly show aborts (observed.md 11): where the log counts more, the log is believed.
    """
    for signal, (amounts, kind) in counted_lines(events).items():
        if signal == "preemptions":
            continue
        known = metrics.values.get(signal)
        lay_amounts(metrics, signal, amounts)
        if known is None or np.nansum(metrics.get(signal)) > np.nansum(known):
            metrics.origins[signal] = counted_origin(events, kind)
        else:
            metrics.values[signal] = known


def _unanswered(evidence: Evidence, series: pl.DataFrame) -> list[Mark]:
    """Mark from when on scrapes failed to the end of the record, after others were answered."""
    up = series.filter(pl.col("metric") == "up").select("series", "source")
    if not up.height:
        return []
    points = evidence.samples.join(up, on="series").sort("stamp")
    answered = points.filter(pl.col("value") > 0)["stamp"].max()
    if not isinstance(answered, float):
        return []
    failed = points.filter(pl.col("stamp") > answered)
    if failed.height < _FAILED_SCRAPES:
        return []
    stamp, source = float(failed["stamp"][0]), int(failed["source"][0])
    place = Place(source, series="up", time=stamp)
    return [Mark(stamp, "unanswered", "scrapes fail from here on", place)]


def _reset_marks(metrics: Columns, marks: list[Mark]) -> list[Mark]:
    """Mark counter resets that no start line explains."""
    starts = [mark.time for mark in marks if mark.kind in ("start", "restart")]
    return [
        Mark(float(time), "restart", "counters began again from zero", None)
        for time in metrics.times[metrics.resets]
        if not any(-120.0 < time - start < 900.0 for start in starts)
    ]
