"""Rows of one stretch of a log in columns that Arrow can take over as they are.

They are written to a file and mapped into memory from there, so that the rows of a log of any size
take no memory of their own, and what one process read is there for another without a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.records import Who
from parsers.vllm_log.texts import PADDING, Views, laid_out, views
from parsers.vllm_log.windows import Ints

Floats = npt.NDArray[np.float64]

_ALIGNED = 64


@dataclass(slots=True)
class Rows:
    """Events in the order of their offsets.

    Attributes:
        offsets / stamps / outers: as in EVENTS; NaN for null.
        whos: for each its place in `table`.
        table: what the other columns hold.
        starts / lengths: where the fields of each stand in `text`.
        text: ends with `texts.PADDING`.
    """

    offsets: Ints
    stamps: Floats
    outers: Floats
    whos: Ints
    table: list[Who]
    starts: Ints
    lengths: Ints
    text: bytes

    def at(self, chosen: Ints) -> "Rows":
        """Return some of them."""
        return Rows(
            self.offsets[chosen],
            self.stamps[chosen],
            self.outers[chosen],
            self.whos[chosen],
            self.table,
            self.starts[chosen],
            self.lengths[chosen],
            self.text,
        )


def stacked(pieces: Sequence[Rows]) -> Rows:
    """Stack rows and put them in the order of their offsets; equal ones stay in their order."""
    table: dict[Who, int] = {}
    text = bytearray()
    whos: list[Ints] = []
    starts: list[Ints] = []
    for piece in pieces:
        numbers = [table.setdefault(who, len(table)) for who in piece.table]
        whos.append(np.array(numbers, np.int64)[piece.whos])
        starts.append(piece.starts + len(text))
        text += piece.text[: len(piece.text) - len(PADDING)]
    text += PADDING
    together = Rows(
        np.concatenate([piece.offsets for piece in pieces]),
        np.concatenate([piece.stamps for piece in pieces]),
        np.concatenate([piece.outers for piece in pieces]),
        np.concatenate(whos),
        list(table),
        np.concatenate(starts),
        np.concatenate([piece.lengths for piece in pieces]),
        bytes(text),
    )
    return together.at(np.argsort(together.offsets, kind="stable"))


Buffer = bytes | npt.NDArray[np.generic] | tuple[int, int] | None


class Column(NamedTuple):
    """One column: a value that all rows have, or Arrow's buffers (validity, values, characters).

    A buffer may lie in a file instead: start and length.
    """

    constant: str | None
    buffers: tuple[Buffer, ...] = ()


@dataclass(slots=True)
class Columns:
    """The columns of EVENTS but `source`, by name."""

    height: int
    columns: dict[str, Column]


def columns(rows: Rows) -> Columns:
    """Lay rows out as Arrow does; none at all have no columns."""
    if not len(rows.offsets):
        return Columns(0, {})
    found = {
        "offset": Column(None, (None, rows.offsets)),
        "stamp": _floats(rows.stamps),
        "outer": _floats(rows.outers),
        "fields": Column(None, (None, views(rows.text, rows.starts, rows.lengths), rows.text)),
    }
    for name, values in zip(Who._fields, zip(*rows.table, strict=True), strict=False):
        found[name] = _texts(values, rows.whos)
    return Columns(len(rows.offsets), found)


def _floats(values: Floats) -> Column:
    missing = np.isnan(values)
    if missing.all():
        return Column(None)
    if not missing.any():
        return Column(None, (None, values))
    return Column(None, (np.packbits(~missing, bitorder="little"), values))


def _texts(values: Sequence[str | None], whos: Ints) -> Column:
    if len(set(values)) == 1:
        return Column(values[0])
    text, starts, lengths = laid_out([(value or "").encode() for value in values])
    few = views(text + PADDING, starts, lengths)
    validity = None
    if None in values:
        validity = np.packbits(
            np.array([value is not None for value in values])[whos], bitorder="little"
        )
    whole: Views = few.view("V16").ravel()[whos]
    return Column(None, (validity, whole, text + PADDING))


def write(laid: Columns, path: Path) -> Columns:
    """Write columns to a file; return them with the places of their buffers in it."""
    found: dict[str, Column] = {}
    with path.open("wb") as file:
        for name, column in laid.columns.items():
            places: list[Buffer] = []
            for buffer in column.buffers:
                if buffer is None or isinstance(buffer, tuple):
                    places.append(buffer)
                    continue
                file.write(bytes(-file.tell() % _ALIGNED))
                start = file.tell()
                file.write(buffer if isinstance(buffer, bytes) else buffer.data)
                places.append((start, file.tell() - start))
            found[name] = Column(column.constant, tuple(places))
    return Columns(laid.height, found)


def mapped(laid: Columns, path: Path) -> Columns:
    """Map columns whose places in a file are known; the file may be removed afterwards."""
    import pyarrow as pa

    if not laid.height:
        return laid
    file = pa.memory_map(str(path))
    whole = file.read_buffer(file.size())
    return Columns(
        laid.height,
        {
            name: Column(
                column.constant,
                tuple(
                    whole.slice(*buffer) if isinstance(buffer, tuple) else buffer
                    for buffer in column.buffers
                ),
            )
            for name, column in laid.columns.items()
        },
    )
