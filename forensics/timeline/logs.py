"""Stats lines and counted lines of one engine → columns on the log's own cadence.

A stats line is a snapshot for running, waiting and usage, and a mean since the previous line for
the throughputs. Between two lines more can happen than either shows. V0 prints a preemption warning
for the 1st, 51st, 101st … preemption only, so the others lie between two warnings, where the pool
was full.
"""

import json
from typing import NamedTuple

import numpy as np
import polars as pl

from forensics.evidence import LARGEST_VALUE, SourceInfo
from forensics.timeline.bins import bin_index, bin_times, fitted
from forensics.timeline.grid import Columns
from forensics.timeline.matching import Reported
from forensics.timeline.recordings import spacing
from forensics.timeline.records import Origin

STATS = "stats_periodic"
# The second shape was printed by no release; it circulates in articles, and people feed it.
_SNAPSHOTS = (STATS, "blog_running_swapped")
_GAUGES = {
    "running": ("running", 1.0),
    "waiting": ("waiting", 1.0),
    "pending": ("waiting", 1.0),
    "swapped": ("swapped", 1.0),
    "deferred": ("waiting_deferred", 1.0),
    "kv_usage_pct": ("kv_usage", 0.01),
    "gpu_kv_usage_pct": ("kv_usage", 0.01),
    "prefix_hit_rate_pct": ("logged_hit_rate", 0.01),
    "prompt_tps": ("prompt_tps", 1.0),
    "generation_tps": ("generation_tps", 1.0),
}
_REFUSED = (429, 503)
FULL = 1.001  # a share printed with one digit is at most this
# V0 preempts when no block is left; a stats line up to 5 s away may show a little less. Guess.
_NEARLY_FULL = 0.9

# Lines come late under load, by less than half an interval; beyond, one is missing (guess).
_LATE = 1.5


class Counted(NamedTuple):
    """What a line reports, after `since` and up to `until`, UTC s; one instant when they equal."""

    since: float
    until: float
    amount: float


def fields_of(events: pl.DataFrame) -> list[dict[str, object]]:
    """Decode the fields of event rows; a row whose fields are no object gives an empty one."""
    decoded: list[dict[str, object]] = []
    for text in events["fields"].to_list():
        value = json.loads(text) if text else {}
        decoded.append(value if isinstance(value, dict) else {})
    return decoded


def number(value: object) -> float | None:
    """Read a field as a number; None when it is none, or none that a server could mean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST_VALUE else None


def reported_by_log(events: pl.DataFrame) -> Reported:
    """Give what stats lines report, for matching clocks; stamps as they are.

    Args:
        events: the events of one engine, in file order.
    """
    stats = events.filter(pl.col("kind").is_in(_SNAPSHOTS) & pl.col("stamp").is_not_null())
    times = stats["stamp"].to_numpy()
    rows = fields_of(stats)
    columns: dict[str, np.ndarray] = {}
    for name, (signal, scale) in _GAUGES.items():
        values = np.array(
            [np.nan if (v := number(row.get(name))) is None else v * scale for row in rows]
        )
        if scale < 1.0:
            values = np.where(values <= FULL, values, np.nan)
        if values.size and not np.isnan(values).all():
            known = columns.get(signal)
            columns[signal] = values if known is None else np.where(np.isnan(known), values, known)
    order = np.argsort(times, kind="stable")
    times = times[order]
    first = np.concatenate(([True], np.diff(times) > 0)) if times.size else np.array([], bool)
    return Reported(times[first], {name: v[order][first] for name, v in columns.items()})


def columns_from_log(events: pl.DataFrame, sources: tuple[SourceInfo, ...]) -> Columns | None:
    """Lay an engine's log rows on bins of the log's own cadence; None without any stats line.

    Args:
        events: the events of one engine on UTC.
        sources: of the evidence; unused sources are allowed.
    """
    reported = reported_by_log(events)
    if not reported.times.size:
        return None
    step = spacing(reported.times) or 10.0
    start, end, step = fitted(reported.times, step)
    times = bin_times(start, end, step)
    index = bin_index(reported.times, start, step, times.size)
    present = np.zeros(times.size, dtype=bool)
    present[index[index >= 0]] = True
    columns = Columns(start, step, times, present, resets=np.zeros(times.size, dtype=bool))
    stats = events.filter(pl.col("kind").is_in(_SNAPSHOTS))
    origin = Origin("log", int(stats["source"][0]), str(stats["kind"][0]))
    for name, values in reported.columns.items():
        laid = np.full(times.size, np.nan)
        laid[index[index >= 0]] = values[index >= 0]
        columns.values[name] = laid
        columns.origins[name] = origin
    _lifetime_hit_rate(columns, events)
    for signal, (amounts, kind) in counted_lines(events).items():
        lay_amounts(columns, signal, amounts)
        columns.origins[signal] = counted_origin(events, kind)
    add_swapped_out(columns)
    interval = _intervals(columns)
    for rate, amount in (("prompt_tps", "prompt_tokens"), ("generation_tps", "generation_tokens")):
        if rate in columns.values:
            columns.values[amount] = columns.get(rate) * interval
            columns.origins[amount] = Origin(
                "log", origin.source, STATS, "mean throughput times the interval"
            )
    return columns


def _intervals(columns: Columns) -> np.ndarray:
    """Give the seconds that each line's throughput is a mean over; NaN for the first; shape (n,).

    After a gap that is the usual interval: an engine takes stock as often while it prints nothing
    because it is idle, and a new process has no line before.
    """
    elapsed = columns.elapsed()
    return np.where(elapsed > _LATE * columns.step, columns.step, elapsed)


def add_swapped_out(columns: Columns) -> None:
    """Take more swapped requests than a point before as preempted, where nothing says so itself.

    Up to 0.4.2 nothing else in log or metrics tells of a preemption.
    """
    counted = {"preemptions", "preemption_lower_bound"} & set(columns.values)
    if counted or "swapped" not in columns.values:
        return
    known = np.flatnonzero(~np.isnan(columns.get("swapped")))
    rises = np.maximum(np.diff(columns.get("swapped")[known]), 0.0)
    if rises.any():
        laid = np.full(columns.count, np.nan)
        laid[known] = np.concatenate(([0.0], rises))
        columns.values["preemption_lower_bound"] = laid
        origin = columns.origins["swapped"]
        columns.origins["preemption_lower_bound"] = Origin(
            origin.clock, origin.source, origin.series, "rise of the requests swapped out"
        )


def counted_lines(events: pl.DataFrame) -> dict[str, tuple[list[Counted], str]]:
    """Count what single lines report: aborts, refusals, preemptions.

    Returns:
        By signal: what was counted, in order of time, and the kind of line it stands in.
    """
    counted: dict[str, tuple[list[Counted], str]] = {}
    wanted = events.filter(
        pl.col("kind").is_in(
            ["request_aborted", "http_access", "preemption", "preemption_docs_form", STATS,
             "blog_preempted"]
        )
        & pl.col("stamp").is_not_null()
    ).sort("stamp", maintain_order=True)  # fmt: skip
    warned: tuple[float, float] | None = None
    for kind, stamp, row in zip(
        wanted["kind"].to_list(), wanted["stamp"].to_list(), fields_of(wanted), strict=True
    ):
        signal, since, amount = "", stamp, 1.0
        if kind == "request_aborted":
            ids = row.get("request_ids")
            signal, amount = "aborted", float(str(ids).count(",") + 1) if ids else 1.0
        elif (
            kind == "http_access"
            and number(row.get("status")) in _REFUSED
            # A health probe answered 503 tells of a server that is down, not of shed load.
            and row.get("path_class", "api") == "api"
        ):
            signal, amount = "rejected", number(row.get("count")) or 1.0
        elif kind in ("preemption", "preemption_docs_form"):
            signal, total = "preemption_lower_bound", number(row.get("total_cumulative")) or 1.0
            # Without the warning before it (the log begins later, or the process is a new one) a
            # cumulative number proves the one preemption that printed it.
            if warned is not None and total > warned[1]:
                since, amount = warned[0], total - warned[1]
            warned = (stamp, total)
        elif kind == "blog_preempted":
            signal = "preemption_lower_bound"
        elif kind == STATS and number(row.get("preemptions")):
            signal, amount = "preemptions", number(row.get("preemptions")) or 0.0
        if signal:
            counted.setdefault(signal, ([], kind))[0].append(Counted(since, stamp, amount))
    return counted


def lay_amounts(columns: Columns, signal: str, amounts: list[Counted]) -> None:
    """Lay counted amounts on bins: at their instant, or over the full-pool bins of their time."""
    laid = np.where(columns.present, 0.0, np.nan)
    full = columns.present & (np.nan_to_num(columns.get("kv_usage")) >= _NEARLY_FULL)
    ends = bin_index(np.array([a.until for a in amounts]), columns.start, columns.step, laid.size)
    for end, (since, until, amount) in zip(ends, amounts, strict=True):
        inside = full & (columns.times > since) & (columns.times < until)
        if end >= 0:
            inside[end] = True
        if inside.any():
            laid[inside] = np.nan_to_num(laid[inside]) + amount / int(inside.sum())
    columns.values[signal] = laid


def counted_origin(events: pl.DataFrame, kind: str) -> Origin:
    """Give where lines of a kind were counted."""
    return Origin("log", int(events.filter(pl.col("kind") == kind)["source"][0]), kind)


def _lifetime_hit_rate(columns: Columns, events: pl.DataFrame) -> None:
    """Lay V0's own hit-rate line, a lifetime average, beside the stats line it follows."""
    lines = events.filter((pl.col("kind") == "prefix_hit_rate") & pl.col("stamp").is_not_null())
    if not lines.height or "logged_hit_rate" in columns.values:
        return
    rates = np.array(
        [
            np.nan if (v := number(row.get("gpu_hit_rate_pct"))) is None or v < 0 else v * 0.01
            for row in fields_of(lines)
        ]
    )
    stamps = lines["stamp"].to_numpy()
    index = bin_index(stamps, columns.start, columns.step, columns.count)
    laid = np.full(columns.count, np.nan)
    laid[index[index >= 0]] = rates[index >= 0]
    columns.values["logged_hit_rate"] = laid
    columns.values["_lifetime"] = laid
    columns.origins["logged_hit_rate"] = Origin(
        "log", int(lines["source"][0]), "prefix_hit_rate", "lifetime average"
    )
    columns.origins["_lifetime"] = columns.origins["logged_hit_rate"]
