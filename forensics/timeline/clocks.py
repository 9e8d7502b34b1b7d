"""Stamps of every clock → UTC: zone and year of each log settled, and how said.

In order of strength: the wrapper's own stamp on the same line; what log and metrics both report
(see matching.py); the zone the operator names; else UTC is assumed and said to be so. A jump of an
hour in a log is daylight saving: the pieces before and after get their own offsets.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from forensics.diary.engines import EngineMap
from forensics.evidence import Evidence
from forensics.timeline.anchors import Anchor, anchor
from forensics.timeline.calendar import (
    date_stamps,
    name_offset,
    year_before,
    year_nearest,
    zone_offsets,
)
from forensics.timeline.clock_changes import pieces_of, spread
from forensics.timeline.logs import STATS, reported_by_log
from forensics.timeline.matching import Match, Reported, match
from forensics.timeline.records import ClockNote
from forensics.timeline.reported import reported_by_metrics

# A start seen by both sides, good to a second, replaces a match this near to it: always, and where
# scrapes are far apart.
_SAME_S = 10.0
_BLURRED_S = 120.0


@dataclass(frozen=True, slots=True)
class Settled:
    """Evidence whose stamps are all UTC (clock "utc"), and how each clock was settled."""

    evidence: Evidence
    notes: tuple[ClockNote, ...]


def settle(
    evidence: Evidence,
    engines: EngineMap,
    tz: str | None = None,
    mtimes: dict[int, float] | None = None,
) -> Settled:
    """Put all stamps on UTC.

    Args:
        evidence: rows with the clocks they were read with.
        engines: which streams and instances belong together.
        tz: zone of the log clock, when the operator knows it.
        mtimes: modification times of sources, UTC s: the last resort for a missing year.
    """
    notes: list[ClockNote] = []
    streams: dict[str, list[int]] = {}
    for index in sorted(set(evidence.events["source"]) | set(evidence.facts["source"])):
        streams.setdefault(evidence.sources[index].stream, []).append(index)
    rows = _number_rows(evidence)
    utc = np.full(rows.height, np.nan)
    for stream, members in sorted(streams.items()):
        mine = rows.filter(pl.col("source").is_in(members))
        if (
            mine.filter(pl.col("clock").is_in(["local", "yearless"])).is_empty()
            and mine["outer"].null_count() == mine.height
        ):
            utc[mine["row"].to_numpy()] = mine["stamp"].to_numpy()
            continue
        other = _Other(
            reported_by_metrics(evidence, engines, stream),
            evidence,
            _series_of(evidence, engines, stream),
            _mtime(members, mtimes),
        )
        times, note = _settle_stream(mine, members[0], other, tz)
        utc[mine["row"].to_numpy()] = times
        notes.append(note)
    count = evidence.events.height
    return Settled(
        replace(
            evidence,
            events=_restamp(evidence.events, utc[:count]),
            facts=_restamp(evidence.facts, utc[count:]),
        ),
        tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Other:
    """What the other side of a log knows: the metrics of its engines, and the file's own age."""

    reported: dict[str, Reported]
    evidence: Evidence
    series: pl.DataFrame
    mtime: float | None


def _series_of(evidence: Evidence, engines: EngineMap, stream: str) -> pl.DataFrame:
    mine = [engines.of_series(evidence, key) for key in engines.keys if stream in key.streams]
    return pl.concat(mine).unique() if mine else evidence.series.clear()


def _number_rows(evidence: Evidence) -> pl.DataFrame:
    columns = ["source", "offset", "clock", "stamp", "outer", "engine", "kind", "fields"]
    facts = evidence.facts.with_columns(
        pl.lit("", dtype=pl.String).alias("kind"), pl.lit("", dtype=pl.String).alias("fields")
    )
    both = pl.concat([evidence.events.select(columns), facts.select(columns)])
    return both.with_row_index("row").sort("source", "offset", maintain_order=True)


def _restamp(frame: pl.DataFrame, times: np.ndarray) -> pl.DataFrame:
    stamps = pl.Series("stamp", times, dtype=pl.Float64).fill_nan(None)
    return frame.with_columns(stamps, pl.lit("utc").alias("clock"))


def _mtime(members: list[int], mtimes: dict[int, float] | None) -> float | None:
    known = [mtimes[index] for index in members if mtimes and index in mtimes]
    return max(known) if known else None


def _settle_stream(
    rows: pl.DataFrame,
    source: int,
    other: _Other,
    tz: str | None,
) -> tuple[np.ndarray, ClockNote]:
    stamps = rows["stamp"].to_numpy()
    outer = rows["outer"].to_numpy()
    no_year = (rows["clock"] == "yearless").to_numpy() & ~np.isnan(stamps)
    full = (rows["clock"] == "local").to_numpy() & ~np.isnan(stamps)
    clock_is_utc = (rows["clock"] == "utc").to_numpy()
    wrapped = ~np.isnan(outer)
    known = ~np.isnan(stamps) & ~clock_is_utc
    year = None
    local = stamps.copy()
    if no_year.any():
        first = float(stamps[no_year][0])
        # Formatters of one log may differ: what one of them dates in full settles the other's year.
        year = (
            year_nearest(first, float(stamps[full][0]))
            if full.any()
            else _year(first, outer, other)
        )
        dated = date_stamps(np.where(no_year, stamps, np.nan), year or 1970)
        local = np.where(no_year, dated, stamps)
    both = wrapped & known
    if wrapped.any():
        offset = _wrapper_offset(local[both], outer[both]) if both.any() else 0.0
        times = np.where(wrapped, outer, np.where(known, local - offset, stamps))
        how = "the wrapper stamps each line in UTC"
        if abs(offset) >= 1:
            how += f"; the server's own clock is {name_offset(offset)} against it"
        return times, ClockNote(source, offset, name_offset(offset), year, "exact", how)
    if not known.any():
        return stamps, ClockNote(source, 0.0, "UTC", None, "exact", "stamps carry their zone")
    if tz is not None:
        offsets = zone_offsets(local, tz)
        note = ClockNote(
            source, float(np.nanmedian(offsets)), tz, year, "exact", "zone given by the operator"
        )
        return np.where(known, local - offsets, stamps), note
    return _settle_by_match(rows, local, known, stamps, source, other, year)


def _year(first: float, outer: np.ndarray, other: _Other) -> int | None:
    """Give the year of the first stamp: by the wrapper, the metrics, or the file's last change."""
    if not np.isnan(outer).all():
        return year_nearest(first, float(np.nanmin(outer)))
    if other.reported:
        begin = min(float(reported.times[0]) for reported in other.reported.values())
        return year_nearest(first, begin)
    return year_before(first, other.mtime) if other.mtime is not None else None


def _wrapper_offset(local: np.ndarray, outer: np.ndarray) -> float:
    """Give the offset between the server's clock and the wrapper's, rounded where it may be."""
    offset = float(np.median(local - outer))
    quarter = round(offset / 900) * 900.0
    return quarter if abs(offset - quarter) < 30 else round(offset, 1)


def _settle_by_match(
    rows: pl.DataFrame,
    local: np.ndarray,
    known: np.ndarray,
    stamps: np.ndarray,
    source: int,
    other: _Other,
    year: int | None,
) -> tuple[np.ndarray, ClockNote]:
    dated = rows.with_columns(pl.Series("stamp", local, dtype=pl.Float64).fill_nan(None))
    held = anchor(other.evidence, other.series, dated) if other.series.height else None
    pieces = pieces_of(local, known)
    found: list[Match] = []
    for piece in pieces:
        near = next((m.offset_s for m in reversed(found) if m.offset_s is not None), None)
        found.append(_match_piece(dated[piece], other.reported, near))
    good = [item for item in found if item.offset_s is not None]
    first = (good[0].offset_s or 0.0) if good else 0.0
    offsets = spread(pieces, [item.offset_s for item in found], local)
    if good and not _overruled(good[0], held, dated, other):
        how = f"log and metrics agree on {good[0].points} stats lines at this offset"
        others = sorted(set(offsets[known].tolist()) - {first})
        if others:
            how += "; clock change within the log to " + ", ".join(map(name_offset, others))
        note = ClockNote(source, first, name_offset(first), year, "matched", how)
        return np.where(known, local - offsets, stamps), note
    reason = found[0].reason if other.reported else "there are no metrics to compare with"
    if held is not None:
        offsets += held.offset_s - first
        quality = "matched" if held.exact else "assumed"
        how = f"{reason}; the server's start fits {name_offset(held.offset_s)}, to the quarter hour"
        if held.exact:
            starts = "start" if held.starts == 1 else "starts"
            how = f"log and metrics agree on {held.starts} {starts} of the server"
            how = f"{reason}; but {how}" if reason else how
        note = ClockNote(source, held.offset_s, name_offset(held.offset_s), year, quality, how)
        return np.where(known, local - offsets, stamps), note
    quality = "undetermined" if other.reported else "assumed"
    how = f"read as UTC: {reason}; give --tz when the server's zone is known"
    note = ClockNote(source, None, None, year, quality, how)
    return np.where(known, local - offsets, stamps), note


def _overruled(found: Match, held: Anchor | None, rows: pl.DataFrame, other: _Other) -> bool:
    """Tell whether a start seen by both sides is the better witness than the traffic.

    Several starts at one offset are no chance. One start may be another one than the log's, so it
    only refines: by seconds, or where scrapes are far apart and the match is blurred, by more.
    """
    if held is None or not held.exact or found.offset_s is None:
        return False
    if held.starts > 1:
        return True
    steps = [float(np.median(np.diff(one.times))) for one in other.reported.values()]
    lines = rows.filter(pl.col("kind") == STATS)["stamp"].drop_nulls().unique().sort().to_numpy()
    sparse = bool(steps) and lines.size > 1 and min(steps) > 2.0 * float(np.median(np.diff(lines)))
    return abs(found.offset_s - held.offset_s) <= (_BLURRED_S if sparse else _SAME_S)


def _match_piece(rows: pl.DataFrame, reference: dict[str, Reported], near: float | None) -> Match:
    best = Match(None, 0, 0.0, "there are no metrics to compare with")
    for rank, reported in sorted(reference.items()):
        mine = rows.filter((pl.col("engine") == rank) | pl.col("engine").is_null())
        log = reported_by_log(mine.filter(pl.col("kind") != ""))
        found = match(log, reported)
        if found.offset_s is None and near is not None:
            found = match(log, reported, near)
        better = found.offset_s is not None and (
            best.offset_s is None or found.evidence > best.evidence
        )
        if better or (best.offset_s is None and found.offset_s is None):
            best = found
    return best
