"""Puts the stretches of one log together and lays them in tables.

Three things need more than one line, so they are settled here: stamps of unstamped lines at the
beginning of a stretch, the last line of a traceback, and counts of intervals that cross a border.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import orjson
import polars as pl

from forensics.clocks import CLOCKS
from forensics.coverage import KindBytes
from forensics.evidence import FACTS, Damage, FileCoverage, concat
from parsers.interface import Parsed
from parsers.vllm_log.frames import NAMES, events_frame, facts_frame
from parsers.vllm_log.intervals import Ends, Tallies, counted, joined_tallies, new_stamps
from parsers.vllm_log.records import MAX_DAMAGES, Mark, Place, Record
from parsers.vllm_log.splice import changed_leading, changed_rows, interleaved
from parsers.vllm_log.stretches import Stretch, counted_rows, rows_of, without_steps
from parsers.vllm_log.windows import Ints

REQUEST_ROWS_BYTES = 32 << 20  # request lines of larger logs are counted per interval, not kept
ERROR_CHARS = 2000
TRACEBACK_BYTES = 64 << 10  # how far from a death its traceback is looked for
UNKNOWN_SHAPES = 20
MANY_TALLIES = 1 << 17  # counted lines that are held before they are added up

_FACTS = {name: dtype for name, dtype in FACTS.items() if name != "source"}
_Held = dict[str | None, tuple[str, float]]


def assemble(stretches: Sequence[Stretch], source: int, size: int, name: str) -> Parsed:
    """Turn the stretches of one source, in their order, into its tables and its coverage."""
    if size > REQUEST_ROWS_BYTES:
        stretches = [without_steps(one) for one in stretches]
    held = _first_stamps(stretches)
    events: list[pl.DataFrame] = []
    facts: list[pl.DataFrame] = []
    marks: list[Mark] = []
    tallies: list[Tallies] = []
    ends: list[Ends] = []
    instances: dict[str | None, int] = {}
    pending, most = 0, MANY_TALLIES
    for one in stretches:
        events.append(_carried(events_frame(one.events), held))
        if one.statements:
            facts.append(_carried(facts_frame(one.statements), held))
        marks += [mark._replace(place=_place(mark.place, held)) for mark in one.marks]
        names = [instances.setdefault(name, len(instances)) for name in one.instances]
        numbers = np.array(names, np.int64)
        tallies.append(_stamped(one, numbers, held))
        ends.append(one.ends._replace(instances=numbers[one.ends.instances]))
        held.update(one.last)
        pending += len(one.tallies.offsets)
        if pending > most:
            # Without stats lines there are many: sums can be added up again later.
            tallies = [counted(joined_tallies(tallies), new_stamps(ends))]
            pending = len(tallies[0].offsets)
            most = max(MANY_TALLIES, 2 * pending)
    tracebacks = events_frame(rows_of(_tracebacks(marks)))
    sums = counted(joined_tallies(tallies), new_stamps(ends))
    counts = events_frame(counted_rows(sums, list(instances)))
    few = pl.concat([tracebacks, counts]).sort("offset", maintain_order=True)
    rows = interleaved(_explained(pl.concat(events), tracebacks), few)
    number = pl.lit(source, pl.UInt32()).alias("source")
    return Parsed(
        coverage=_coverage(stretches, source, size, name),
        events=rows.select(number, *NAMES),
        facts=concat(facts, _FACTS).select(number, *_FACTS),
        damages=tuple(
            Damage(source, offset, reason)
            for offset, reason in [at for one in stretches for at in one.damages][:MAX_DAMAGES]
        ),
    )


def _first_stamps(stretches: Sequence[Stretch]) -> _Held:
    """Return per instance the first stamp of all: the nearest for lines that precede it."""
    held: _Held = {}
    for one in stretches:
        for instance, when in one.first.items():
            held.setdefault(instance, when)
    return held


def _carried(frame: pl.DataFrame, held: _Held) -> pl.DataFrame:
    """Give rows without stamp the one that held for their instance before this stretch."""
    if not held or not frame["stamp"].null_count():
        return frame

    def filled(rows: pl.DataFrame) -> pl.DataFrame:
        for instance, (clock, stamp) in held.items():
            here = pl.col("stamp").is_null() & pl.col("instance").eq_missing(pl.lit(instance))
            rows = rows.with_columns(
                clock=pl.when(here).then(pl.lit(clock)).otherwise("clock"),
                stamp=pl.when(here).then(pl.lit(stamp)).otherwise("stamp"),
            )
        return rows

    return changed_leading(frame, pl.col("stamp").is_null(), filled)


def _stamped(one: Stretch, numbers: Ints, held: _Held) -> Tallies:
    """Return the tallies of a stretch with the stamps that held before it, and new numbers."""
    tallies = one.tallies
    stamps, clocks = tallies.stamps.copy(), tallies.clocks.copy()
    missing = np.isnan(stamps)
    for number, instance in enumerate(one.instances):
        if instance in held:
            here = missing & (tallies.instances == number)
            clocks[here] = CLOCKS.index(held[instance][0])
            stamps[here] = held[instance][1]
    return tallies._replace(stamps=stamps, clocks=clocks, instances=numbers[tallies.instances])


def _place(place: Place, held: _Held) -> Place:
    if place.stamp is not None or place.instance not in held:
        return place
    clock, stamp = held[place.instance]
    return place._replace(clock=clock, stamp=stamp)


def _tracebacks(marks: Iterable[Mark]) -> list[Record]:
    """Return one event per exception: its type and text, and whether a traceback led to it."""
    opened: set[tuple[str | None, str | None]] = set()
    events: list[Record] = []
    for mark in marks:
        who = (mark.place.instance, mark.place.process)
        if mark.error is None:
            opened.add(who)
            continue
        fields = {"error": mark.error[:ERROR_CHARS], "traceback": who in opened}
        opened.discard(who)
        events.append(Record(mark.place, "traceback", orjson.dumps(fields).decode()))
    return events


def _explained(rows: pl.DataFrame, tracebacks: pl.DataFrame) -> pl.DataFrame:
    """Give each death of an engine the last line of the nearest traceback of its process."""
    if not tracebacks.height:
        return rows
    columns = ("offset", "instance", "process", "fields")
    errors = [
        (offset, (instance, process), str(orjson.loads(fields)["error"]))
        for offset, instance, process, fields in tracebacks.select(columns).iter_rows()
    ]

    def explained(deaths: pl.DataFrame) -> pl.DataFrame:
        fields = [
            _with_error(text, (instance, process), offset, errors)
            for offset, instance, process, text in deaths.select(columns).iter_rows()
        ]
        return deaths.with_columns(fields=pl.Series(fields, dtype=pl.String))

    return changed_rows(rows, pl.col("kind") == "engine_death", explained)


def _with_error(
    text: str,
    who: tuple[str | None, str | None],
    offset: int,
    errors: Sequence[tuple[int, tuple[str | None, str | None], str]],
) -> str:
    near = [
        (abs(at - offset), error)
        for at, whose, error in errors
        if whose == who and -TRACEBACK_BYTES < offset - at < TRACEBACK_BYTES
    ]
    fields = orjson.loads(text)
    if near and "error" not in fields:
        fields["error"] = min(near)[1]
    return orjson.dumps(fields).decode()


def _coverage(stretches: Sequence[Stretch], source: int, size: int, name: str) -> FileCoverage:
    shapes: Counter[str] = Counter()
    for one in stretches:
        shapes.update(one.shapes)
    ranked = sorted(shapes.items(), key=lambda item: (-item[1], item[0]))[:UNKNOWN_SHAPES]
    return FileCoverage(
        source=source,
        format=name,
        bytes=size,
        lines=sum(one.lines for one in stretches),
        matched=sum(one.matched for one in stretches),
        ignored=sum(one.ignored for one in stretches),
        unknown=sum(one.unknown for one in stretches),
        damaged=sum(one.damaged for one in stretches),
        kind_bytes=KindBytes(
            matched=sum(one.kind_bytes.matched for one in stretches),
            ignored=sum(one.kind_bytes.ignored for one in stretches),
            unknown=sum(one.kind_bytes.unknown for one in stretches),
            damaged=sum(one.kind_bytes.damaged for one in stretches),
        ),
        unknown_shapes=tuple(ranked),
    )
