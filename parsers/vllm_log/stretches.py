"""What one stretch of a log yielded: rows in columns, and what only its neighbours can settle.

Small to send from one process to another, and made without the libraries of tables, so that a
process that only reads starts at once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from forensics.clocks import CLOCKS
from forensics.coverage import KindBytes
from parsers.vllm_log.bulk import code_of, label_of
from parsers.vllm_log.chunks import STATS_KIND
from parsers.vllm_log.intervals import (
    Ends,
    Tallies,
    border,
    counted,
    dense,
    divided,
    gathered,
    joined_tallies,
    new_stamps,
)
from parsers.vllm_log.records import Counted, Mark, Part, Record, Statement, Tally, Who
from parsers.vllm_log.rows import Columns, Rows, stacked
from parsers.vllm_log.texts import PADDING, laid_out

_STEPS = {
    "request_received": code_of("request", "received"),
    "request_added": code_of("request", "added"),
    "request_finished": code_of("request", "finished"),
}


@dataclass(slots=True)
class Stretch:
    """See `Part` for the fields that are not explained here.

    Attributes:
        events: rows, or their columns where another process laid them out.
        instances: names that `tallies` and `ends` refer to.
        tallies: counted lines of intervals that are not wholly inside, added up where they surely
            fall into one.
        ends: the ends of intervals that those may belong to.
    """

    events: Rows | Columns
    statements: list[Statement]
    instances: list[str | None]
    tallies: Tallies
    ends: Ends
    marks: list[Mark]
    first: dict[str | None, tuple[str, float]]
    last: dict[str | None, tuple[str, float]]
    lines: int
    matched: int
    ignored: int
    unknown: int
    damaged: int
    kind_bytes: KindBytes
    shapes: Counter[str]
    damages: list[tuple[int, str]]


def stretch(part: Part) -> Stretch:
    """Lay the rows of a part in columns, and count what can be counted."""
    rows = stacked([rows_of(part.records), *_plain(part)])
    instances = part.instances.copy()
    ends = new_stamps([_ends(rows, instances)])
    tallies = _tallies(part, instances)
    if part.counts_requests:
        # Most steps were counted as they were read; a few lines of odd shapes are rows yet.
        rows, steps = _steps(rows, instances)
        if len(steps.offsets):
            tallies = joined_tallies([tallies, steps])
    inside, outside = divided(tallies, ends)
    names = list(instances)
    return Stretch(
        events=stacked([rows, counted_rows(counted(inside, ends), names)]),
        statements=part.statements,
        instances=names,
        tallies=gathered(outside, ends),
        ends=border(ends),
        marks=part.marks,
        first=part.first,
        last=part.last,
        lines=part.lines,
        matched=part.matched,
        ignored=part.ignored,
        unknown=part.unknown,
        damaged=part.damaged,
        kind_bytes=KindBytes(
            part.matched_bytes, part.ignored_bytes, part.unknown_bytes, part.damaged_bytes
        ),
        shapes=part.shapes,
        damages=part.damages,
    )


def rows_of(records: Sequence[Record]) -> Rows:
    """Lay records in columns."""
    table: dict[Who, int] = {}
    whos = [
        table.setdefault(
            Who(row.place.clock, row.place.instance, row.place.engine, row.place.process, row.kind),
            len(table),
        )
        for row in records
    ]
    # Lone surrogates are nothing that vLLM prints, and no text either.
    text, starts, lengths = laid_out([row.fields.encode(errors="replace") for row in records])
    nan = float("nan")
    stamps = [nan if row.place.stamp is None else row.place.stamp for row in records]
    outers = [nan if row.place.outer is None else row.place.outer for row in records]
    return Rows(
        offsets=np.array([row.place.offset for row in records], np.int64),
        stamps=np.array(stamps, np.float64),
        outers=np.array(outers, np.float64),
        whos=np.array(whos, np.int64),
        table=list(table),
        starts=starts,
        lengths=lengths,
        text=text + PADDING,
    )


def _plain(part: Part) -> list[Rows]:
    if not part.plain:
        return []
    lengths = np.concatenate([piece.lengths for piece in part.plain])
    offsets = np.concatenate([piece.offsets for piece in part.plain])
    return [
        Rows(
            offsets=offsets,
            stamps=np.concatenate([piece.stamps for piece in part.plain]),
            outers=np.concatenate([piece.outers for piece in part.plain]),
            whos=np.concatenate([piece.whos for piece in part.plain]),
            table=list(part.whos),
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            text=b"".join([*(piece.text for piece in part.plain), PADDING]),
        )
    ]


def _ends(rows: Rows, instances: dict[str | None, int]) -> Ends:
    stats = np.array([who.kind == STATS_KIND for who in rows.table], np.bool_)
    numbers = [instances.setdefault(who.instance, len(instances)) for who in rows.table]
    chosen = np.flatnonzero(stats[rows.whos])
    whose = np.array(numbers, np.int64)[rows.whos[chosen]]
    return Ends(rows.offsets[chosen], whose, rows.stamps[chosen])


def _tallies(part: Part, instances: dict[str | None, int]) -> Tallies:
    if not part.counted:
        return _single(part.tallies, instances)
    bulk = Counted._make(map(np.concatenate, zip(*part.counted, strict=True)))
    tallies = Tallies(
        offsets=bulk.offsets,
        clocks=bulk.clocks,
        stamps=bulk.stamps,
        outers=bulk.outers,
        instances=bulk.instances,
        codes=bulk.codes,
        lines=np.broadcast_to(np.int64(1), bulk.offsets.shape),
    )
    if not part.tallies:
        return tallies
    return joined_tallies([_single(part.tallies, instances), tallies])


def _single(tallies: Sequence[Tally], instances: dict[str | None, int]) -> Tallies:
    nan = float("nan")
    stamps = [nan if row.stamp is None else row.stamp for row in tallies]
    outers = [nan if row.outer is None else row.outer for row in tallies]
    whose = [instances.setdefault(row.instance, len(instances)) for row in tallies]
    codes = [code_of(row.label, row.detail) for row in tallies]
    return Tallies(
        offsets=np.array([row.offset for row in tallies], np.int64),
        clocks=np.array([CLOCKS.index(row.clock) for row in tallies], np.int64),
        stamps=np.array(stamps, np.float64),
        outers=np.array(outers, np.float64),
        instances=np.array(whose, np.int64),
        codes=np.array(codes, np.int64),
        lines=np.array([row.lines for row in tallies], np.int64),
    )


def counted_rows(tallies: Tallies, instances: Sequence[str | None]) -> Rows:
    """Return one event for each tally."""
    if not len(tallies.offsets):
        return rows_of(())
    kinds, code = dense(tallies.codes)
    labels = [label_of(kind) for kind in kinds.tolist()]
    beginnings = [_beginning(*label) for label in labels]
    distinct, places = dense(tallies.lines * len(kinds) + code)
    texts = [
        b"%b%d}" % (beginnings[number % len(kinds)], number // len(kinds))
        for number in distinct.tolist()
    ]
    text, starts, lengths = laid_out(texts)
    who = (tallies.instances * len(CLOCKS) + tallies.clocks) * len(kinds) + code
    distinct, whos = dense(who)
    table = [
        Who(
            clock=CLOCKS[number // len(kinds) % len(CLOCKS)],
            instance=instances[number // len(kinds) // len(CLOCKS)],
            engine=None,
            process="APIServer",
            kind="request_counts" if labels[number % len(kinds)][0] == "request" else "http_access",
        )
        for number in distinct.tolist()
    ]
    return Rows(
        offsets=tallies.offsets,
        stamps=tallies.stamps,
        outers=tallies.outers,
        whos=whos,
        table=table,
        starts=starts[places],
        lengths=lengths[places],
        text=text + PADDING,
    )


def _beginning(label: str, detail: str) -> bytes:
    """Return the fields of an event up to its count."""
    if label == "request":
        return f'{{"{detail}":'.encode()
    return f'{{"status":{label},"path_class":"{detail}","count":'.encode()


def without_steps(done: Stretch) -> Stretch:
    """Turn rows of request steps into counts: the log turned out to be too long to keep them."""
    rows = done.events
    if isinstance(rows, Columns):
        return done  # other processes read logs that are long enough
    instances: dict[str | None, int] = {name: at for at, name in enumerate(done.instances)}
    kept, found = _steps(rows, instances)
    if not len(found.offsets):
        return done
    ends = new_stamps([_ends(rows, instances)])
    inside, outside = divided(found, ends)
    names = list(instances)
    return replace(
        done,
        events=stacked([kept, counted_rows(counted(inside, ends), names)]),
        instances=names,
        tallies=joined_tallies([done.tallies, outside]),
    )


def _steps(rows: Rows, instances: dict[str | None, int]) -> tuple[Rows, Tallies]:
    """Take rows of request steps out, as tallies."""
    codes = np.array([_STEPS.get(who.kind, 0) for who in rows.table], np.int64)[rows.whos]
    steps = np.flatnonzero(codes)
    whose = [instances.setdefault(who.instance, len(instances)) for who in rows.table]
    clocks = [CLOCKS.index(who.clock) for who in rows.table]
    tallies = Tallies(
        offsets=rows.offsets[steps],
        clocks=np.array(clocks, np.int64)[rows.whos[steps]],
        stamps=rows.stamps[steps],
        outers=rows.outers[steps],
        instances=np.array(whose, np.int64)[rows.whos[steps]],
        codes=codes[steps],
        lines=np.ones(len(steps), np.int64),
    )
    return (rows.at(np.flatnonzero(codes == 0)) if len(steps) else rows), tallies
