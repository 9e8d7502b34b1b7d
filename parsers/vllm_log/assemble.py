"""Puts the parts of one log together and lays them in tables.

Three things need more than one line, so they are settled here: stamps of unstamped lines at the
beginning of a part, the last line of a traceback, and lines that are only counted. Counted lines
become one event per stats interval: an interval ends with a stats line that has a new stamp, and
where the server prints none (idle, `--api-server-count` above 1) after ten seconds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import orjson
import polars as pl

from forensics.evidence import EVENTS, FACTS, FileCoverage
from parsers.interface import Parsed
from parsers.vllm_log.records import Mark, Part, Place, Record, Statement, Tally, damages_of

REQUEST_ROWS_BYTES = 32 << 20  # request lines of larger logs are counted per interval, not kept
ERROR_CHARS = 2000
INTERVAL_S = 10.0  # the default interval of V1's stats lines
UNKNOWN_SHAPES = 20

_STEPS = {
    "request_received": "received",
    "request_added": "added",
    "request_finished": "finished",
}
_TALLIES: dict[str, pl.DataType] = {
    "offset": pl.UInt64(),
    "clock": pl.String(),
    "stamp": pl.Float64(),
    "outer": pl.Float64(),
    "instance": pl.String(),
    "label": pl.String(),
    "detail": pl.String(),
    "lines": pl.UInt64(),
}
_PLACE = ("offset", "clock", "stamp", "outer", "instance", "engine", "process")


def assemble(parts: Sequence[Part], source: int, size: int, name: str) -> Parsed:
    """Turn the parts of one source, in their order, into its tables and its coverage."""
    _carry(parts)
    events = _events(parts, source)
    tallies = _tallies(parts)
    if size > REQUEST_ROWS_BYTES:
        events, counted = _count_requests(events)
        tallies = pl.concat([tallies, counted])
    counts = _intervals(tallies, events)
    events = pl.concat([events, counts.select(pl.lit(source, pl.UInt32()).alias("source"), "*")])
    events = events.select(list(EVENTS)).sort("offset", maintain_order=True)
    return Parsed(
        coverage=_coverage(parts, source, size, name),
        events=events,
        facts=_facts(parts, source),
        damages=damages_of(source, list(parts)),
    )


def _carry(parts: Sequence[Part]) -> None:
    """Give rows before the first stamped line of a part the stamp that held before it.

    Rows before the first stamped line of all get that first stamp, which is the nearest.
    """
    held: dict[str | None, tuple[str, float]] = {}
    for part in parts:
        for instance, when in part.first.items():
            held.setdefault(instance, when)
    for part in parts:
        part.records = [row._replace(place=_place(row.place, held)) for row in part.records]
        part.statements = [row._replace(place=_place(row.place, held)) for row in part.statements]
        part.marks = [row._replace(place=_place(row.place, held)) for row in part.marks]
        part.tallies = [_tally(row, held) for row in part.tallies]
        held.update(part.last)


def _place(place: Place, held: dict[str | None, tuple[str, float]]) -> Place:
    if place.stamp is not None or place.instance not in held:
        return place
    clock, stamp = held[place.instance]
    return place._replace(clock=clock, stamp=stamp)


def _tally(tally: Tally, held: dict[str | None, tuple[str, float]]) -> Tally:
    if tally.stamp is not None or tally.instance not in held:
        return tally
    clock, stamp = held[tally.instance]
    return tally._replace(clock=clock, stamp=stamp)


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


def _place_columns(places: Sequence[Place]) -> dict[str, list[object]]:
    columns = zip(*places, strict=True) if places else ([] for _ in _PLACE)
    return {name: list(values) for name, values in zip(_PLACE, columns, strict=True)}


def _events(parts: Sequence[Part], source: int) -> pl.DataFrame:
    rows = [row for part in parts for row in part.records]
    rows += _tracebacks(mark for part in parts for mark in part.marks)
    columns = _place_columns([row.place for row in rows])
    columns["source"] = [source] * len(rows)
    columns["kind"] = [row.kind for row in rows]
    columns["fields"] = [row.fields for row in rows]
    return pl.DataFrame(columns, schema_overrides=EVENTS, schema=list(EVENTS))


def _facts(parts: Sequence[Part], source: int) -> pl.DataFrame:
    rows: list[Statement] = [row for part in parts for row in part.statements]
    columns = _place_columns([row.place for row in rows])
    del columns["process"]
    columns["source"] = [source] * len(rows)
    columns["key"] = [row.fact.key for row in rows]
    columns["value"] = [row.fact.value for row in rows]
    return pl.DataFrame(columns, schema_overrides=FACTS, schema=list(FACTS))


def _tallies(parts: Sequence[Part]) -> pl.DataFrame:
    rows = [row for part in parts for row in part.tallies]
    return pl.DataFrame(rows, schema=_TALLIES, orient="row")


def _count_requests(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split request steps off the events and return both, the latter as tallies."""
    steps = events.filter(pl.col("kind").is_in(list(_STEPS)))
    counted = steps.select(
        "offset",
        "clock",
        "stamp",
        "outer",
        "instance",
        pl.lit("request").alias("label"),
        pl.col("kind").replace_strict(_STEPS, return_dtype=pl.String()).alias("detail"),
        pl.lit(1, pl.UInt64()).alias("lines"),
    )
    return events.filter(~pl.col("kind").is_in(list(_STEPS))), counted


def _intervals(tallies: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Return one event per interval, instance, status and path class."""
    ends = (
        events.filter(pl.col("kind") == "stats_periodic")
        .select("offset", "instance", "stamp")
        .sort("offset")
        .filter((pl.col("stamp") != pl.col("stamp").shift(1).over("instance")).fill_null(True))
        .select("instance", "offset", pl.col("offset").alias("end"))
    )
    when = pl.coalesce("stamp", "outer")
    grouped = (
        tallies.sort("offset")
        .join_asof(ends, on="offset", by="instance", strategy="backward", check_sortedness=False)
        .group_by(
            "instance",
            "label",
            "detail",
            pl.col("end").fill_null(0),
            (when / INTERVAL_S).floor().alias("slot"),
            maintain_order=True,
        )
        .agg(
            pl.col("offset", "clock", "stamp", "outer").first(),
            pl.col("lines").sum(),
        )
    )
    columns = {
        **{name: grouped[name] for name in ("offset", "clock", "stamp", "outer", "instance")},
        "engine": pl.Series([None] * grouped.height, dtype=pl.String()),
        "process": pl.Series(["APIServer"] * grouped.height, dtype=pl.String()),
    }
    kinds: list[str] = []
    fields: list[str] = []
    for label, detail, count in grouped.select("label", "detail", "lines").iter_rows():
        if label == "request":
            kinds.append("request_counts")
            fields.append(f'{{"{detail}":{count}}}')
        else:
            kinds.append("http_access")
            fields.append(f'{{"status":{label},"path_class":"{detail}","count":{count}}}')
    return pl.DataFrame(columns).with_columns(
        pl.Series("kind", kinds, dtype=pl.String()), pl.Series("fields", fields, dtype=pl.String())
    )


def _coverage(parts: Sequence[Part], source: int, size: int, name: str) -> FileCoverage:
    shapes: Counter[str] = Counter()
    for part in parts:
        shapes.update(part.shapes)
    ranked = sorted(shapes.items(), key=lambda item: (-item[1], item[0]))[:UNKNOWN_SHAPES]
    return FileCoverage(
        source=source,
        format=name,
        bytes=size,
        lines=sum(part.lines for part in parts),
        matched=sum(part.matched for part in parts),
        ignored=sum(part.ignored for part in parts),
        unknown=sum(part.unknown for part in parts),
        damaged=sum(part.damaged for part in parts),
        unknown_shapes=tuple(ranked),
    )
