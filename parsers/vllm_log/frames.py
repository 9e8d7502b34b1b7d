"""The rows of one stretch of a log, in frames: small to send from one process to another."""

import io
import logging
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from forensics.evidence import CLOCKS, EVENTS, FACTS
from parsers.vllm_log.bulk import code_of
from parsers.vllm_log.intervals import TALLIES, counted_events, interval_ends, settled
from parsers.vllm_log.records import Counted, Mark, Part, Place

_LOG = logging.getLogger(__name__)

_STEPS = {
    "request_received": code_of("request", "received"),
    "request_added": code_of("request", "added"),
    "request_finished": code_of("request", "finished"),
}
_PLAIN = ("offset", "stamp", "engine", "process", "kind", "fields")
PLACE = ("offset", "clock", "stamp", "outer", "instance", "engine", "process")


@dataclass(slots=True)
class Stretch:
    """What one stretch of a log yielded; see `Part` for the fields that are not frames.

    Attributes:
        events / facts: as in the evidence, without the column `source`.
        tallies: counted lines of intervals that are not wholly inside; schema TALLIES.
        ends: where intervals end; schema ENDS.
    """

    events: pl.DataFrame
    facts: pl.DataFrame
    tallies: pl.DataFrame
    ends: pl.DataFrame
    marks: list[Mark]
    first: dict[str | None, tuple[str, float]]
    last: dict[str | None, tuple[str, float]]
    lines: int
    matched: int
    ignored: int
    unknown: int
    damaged: int
    shapes: Counter[str]
    damages: list[tuple[int, str]]


def place_columns(places: Sequence[Place]) -> dict[str, list[object]]:
    """Turn places into columns."""
    columns = zip(*places, strict=True) if places else ([] for _ in PLACE)
    return {name: list(values) for name, values in zip(PLACE, columns, strict=True)}


def stretch(part: Part) -> Stretch:
    """Lay the rows of a part in frames."""
    events = place_columns([row.place for row in part.records])
    events["kind"] = [row.kind for row in part.records]
    events["fields"] = [row.fields for row in part.records]
    rows = pl.DataFrame(events, schema=_without_source(EVENTS, PLACE, "kind", "fields"))
    facts = place_columns([row.place for row in part.statements])
    del facts["process"]
    facts["key"] = [row.fact.key for row in part.statements]
    facts["value"] = [row.fact.value for row in part.statements]
    rows = pl.concat([rows, _plain(part, rows.schema)])
    ends = interval_ends(rows)
    tallies = _tallies(part)
    inside = settled(tallies, ends)
    inner = counted_events(tallies.filter(inside), ends)
    return Stretch(
        events=pl.concat([rows, inner]).sort("offset", maintain_order=True),
        facts=pl.DataFrame(facts, schema=_without_source(FACTS, PLACE[:-1], "key", "value")),
        tallies=tallies.filter(~inside),
        ends=ends,
        marks=part.marks,
        first=part.first,
        last=part.last,
        lines=part.lines,
        matched=part.matched,
        ignored=part.ignored,
        unknown=part.unknown,
        damaged=part.damaged,
        shapes=part.shapes,
        damages=part.damages,
    )


def _plain(part: Part, schema: pl.Schema) -> pl.DataFrame:
    rows = part.plain
    frame = pl.DataFrame(
        {
            "offset": rows.offsets,
            "stamp": rows.stamps,
            "engine": [engine for engine, _ in rows.whos],
            "process": [process for _, process in rows.whos],
            "kind": rows.kinds,
            "fields": rows.fields,
        },
        schema={name: schema[name] for name in _PLAIN},
    )
    return frame.with_columns(
        clock=pl.lit("yearless"),
        outer=pl.lit(None, pl.Float64()),
        instance=pl.lit(None, pl.String()),
    ).select(list(schema))


def _without_source(
    schema: dict[str, pl.DataType], names: Sequence[str], *more: str
) -> dict[str, pl.DataType]:
    return {name: schema[name] for name in (*names, *more)}


def _tallies(part: Part) -> pl.DataFrame:
    single = pl.DataFrame(
        [(*row[:5], code_of(row.label, row.detail), row.lines) for row in part.tallies],
        schema=TALLIES,
        orient="row",
    )
    if not part.counted:
        return single
    columns = Counted(*(np.concatenate(arrays) for arrays in zip(*part.counted, strict=True)))
    counted = pl.DataFrame(
        {
            "offset": pl.Series(columns.offsets).cast(pl.UInt64),
            "clock": pl.Series(columns.clocks).replace_strict(
                dict(enumerate(CLOCKS)), return_dtype=pl.String
            ),
            "stamp": pl.Series(columns.stamps).fill_nan(None),
            "code": pl.Series(columns.codes),
            "lines": pl.Series(columns.lines).cast(pl.UInt64),
        }
    ).select(
        "offset",
        "clock",
        "stamp",
        pl.lit(None, pl.Float64()).alias("outer"),
        pl.lit(None, pl.String()).alias("instance"),
        "code",
        "lines",
    )
    return pl.concat([single, counted])


def without_steps(done: Stretch) -> Stretch:
    """Turn rows of request steps into counts: the log turned out to be too long to keep them."""
    is_step = pl.col("kind").is_in(list(_STEPS))
    if not done.events.select(is_step.any()).item():
        return done
    steps = done.events.filter(is_step).select(
        "offset",
        "clock",
        "stamp",
        "outer",
        "instance",
        pl.col("kind").replace_strict(_STEPS, return_dtype=pl.Int64()).alias("code"),
        pl.lit(1, pl.UInt64()).alias("lines"),
    )
    inside = settled(steps, done.ends)
    inner = counted_events(steps.filter(inside), done.ends)
    rows = done.events.filter(~is_step)
    return replace(
        done,
        events=pl.concat([rows, inner]).sort("offset", maintain_order=True),
        tallies=pl.concat([done.tallies, steps.filter(~inside)]),
    )


def packed(done: Stretch, path: Path) -> bytes:
    """Write a stretch for another process of this program: events to a file, the rest as bytes."""
    done.events.write_ipc(path, compression="uncompressed")
    frames = [_ipc(frame) for frame in (done.facts, done.tallies, done.ends)]
    nothing = pl.DataFrame()
    bare = replace(done, events=nothing, facts=nothing, tallies=nothing, ends=nothing)
    return pickle.dumps((bare, frames), pickle.HIGHEST_PROTOCOL)


def _ipc(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


def unpacked(data: bytes, path: Path) -> Stretch:
    """Read what `packed` wrote."""
    bare: Stretch
    bare, frames = pickle.loads(data)
    facts, tallies, ends = (pl.read_ipc(frame) for frame in frames)
    return replace(bare, events=mapped(path), facts=facts, tallies=tallies, ends=ends)


def spilled(done: Stretch, folder: Path, name: str) -> Stretch:
    """Move the events of a stretch to a file in a folder, whence they are mapped into memory.

    The file may be removed once it is mapped. Where it cannot be written (no temporary space), the
    events stay in memory.
    """
    path = folder / f"{name}.arrow"
    try:
        done.events.write_ipc(path, compression="uncompressed")
        return replace(done, events=mapped(path))
    except OSError as error:
        _LOG.warning("%s: %s; rows are kept in memory", folder, error.strerror or error)
        return done


def mapped(path: Path) -> pl.DataFrame:
    """Map a frame that lies in a file into memory without reading it."""
    import pyarrow as pa

    frame = pl.from_arrow(pa.ipc.open_file(pa.memory_map(str(path))).read_all())
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()
