"""Cuts blocks of sample lines into names, values and timestamps in bulk.

A dump repeats the same few thousand names millions of times, so names are told apart as plain bytes
and only one of each is read; numbers are converted as columns. What does not fit the plain form
(``name value`` or ``name value timestamp``, single spaces) is handed back to be read line by line.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from parsers.prometheus.rows import Floats

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_NOWHERE = np.full(2, -1)  # where the separators before the first ones would be
_NEWLINE, _RETURN, _SPACE, _BRACE, _HASH = (ord(char) for char in "\n\r }#")
_WORD_BYTES = 8
_SEVEN_BYTES = np.uint64((1 << 56) - 1)
_DESCRIPTIONS = np.array(
    [int.from_bytes(word, "little") for word in (b"# HELP ", b"# TYPE ", b"# UNIT ")], np.uint64
)
_PARTS = 6  # of a line: name, gap, value, gap, timestamp, gap up to the next sample line


@dataclass(frozen=True, slots=True)
class SampleLines:
    """The lines of one block. The columns have one row for each line in plain form.

    Attributes:
        starts / ends: of every line in the block, line end not included.
        lines: which lines the rows stand for.
        odd: lines to be read singly: comments that are neither HELP, TYPE nor UNIT, and all that is
            no plain sample.
        silent: number of HELP, TYPE and UNIT lines and of empty lines.
        names: distinct names (with labels) as they stand in the text.
        name: index into `names`.
        value: as exposed.
        stamp: timestamp as exposed; NaN where the line has none.
    """

    starts: Indices
    ends: Indices
    lines: Indices
    odd: Indices
    silent: int
    names: list[bytes]
    name: Indices
    value: Floats
    stamp: Floats


def cut(block: bytes) -> SampleLines:
    """Cut a block of whole lines (text that ends with a line end) that is not empty."""
    text = np.frombuffer(block, np.uint8)
    # One look finds line ends and spaces; the rest of the white space is sorted out when there.
    marks = np.flatnonzero(text <= _SPACE)
    kinds = text[marks]
    separating = (kinds == _NEWLINE) | (kinds == _SPACE)
    if not separating.all():
        marks, kinds = marks[separating], kinds[separating]
    at = np.flatnonzero(kinds == _NEWLINE)
    newlines = marks[at]
    starts = np.concatenate([np.zeros(1, np.int64), newlines[:-1] + 1])
    ends = newlines - ((newlines > starts) & (text[newlines - 1] == _RETURN))
    comment = text[starts] == _HASH
    silent = ends == starts
    silent[comment] |= _is_description(block, starts[comment])
    lines = np.flatnonzero(~silent & ~comment)
    marks = np.concatenate([_NOWHERE, marks])
    before, last = marks[at[lines]], marks[at[lines] + 1]
    bounds, plain = _bounds(block, starts[lines], ends[lines], before, last)
    if not plain.all():
        lines, bounds = lines[plain], bounds[plain]
    names, name, value, stamp = _columns(block, bounds)
    stamped = bounds[:, 4] > bounds[:, 3]
    good = value.is_not_null().to_numpy() & (stamp.is_not_null().to_numpy() | ~stamped)
    is_row = np.zeros(len(starts), np.bool_)
    is_row[lines[good]] = True
    return SampleLines(
        starts,
        ends,
        lines[good],
        np.flatnonzero(~is_row & ~silent),
        int(silent.sum()),
        names,
        name[good].astype(np.int64),
        value.fill_null(np.nan).to_numpy()[good],
        stamp.fill_null(np.nan).to_numpy()[good],
    )


def _is_description(block: bytes, starts: Indices) -> Mask:
    """Tell which lines start like ``# HELP``, ``# TYPE`` or ``# UNIT``."""
    if len(block) < _WORD_BYTES:
        return np.zeros(len(starts), np.bool_)
    # A view of eight bytes from every place on, so that one look compares a whole word.
    words = np.ndarray(len(block) - _WORD_BYTES + 1, "<u8", block, strides=(1,))
    whole = starts < len(words)
    found = words[np.where(whole, starts, 0)] & _SEVEN_BYTES
    help_, type_, unit = _DESCRIPTIONS
    described: Mask = (found == help_) | (found == type_) | (found == unit)
    return whole & described


def _bounds(
    block: bytes, starts: Indices, ends: Indices, before: Indices, last: Indices
) -> tuple[Indices, Mask]:
    """Find the parts of sample lines by their last two separators.

    Returns:
        Per line where name, gap, value, gap, timestamp and gap start; and which lines have a name
        and a value at all.
    """
    text = np.frombuffer(block, np.uint8)
    plain = last > starts
    # Behind a closing brace stands the value; else what stands there is a timestamp, if the line
    # has another space: ``up 1`` against ``up 1 1795973250106``.
    stamped = plain & (text[last - 1] != _BRACE) & (before > starts)
    name_end = np.where(stamped, before, last)
    value_end = np.where(stamped, last, ends)
    stamp_start = np.where(stamped, last + 1, ends)
    if not block.isascii():  # what is no ASCII is no number, and maybe no UTF-8 either
        foreign = np.flatnonzero(text >= 128)
        plain &= np.searchsorted(foreign, name_end) == np.searchsorted(foreign, ends)
    return np.stack([starts, name_end, name_end + 1, value_end, stamp_start, ends], axis=1), plain


def _columns(block: bytes, bounds: Indices) -> tuple[list[bytes], Indices, pl.Series, pl.Series]:
    """Convert the parts of lines into distinct names, index of the name, values and stamps."""
    import pyarrow as pa  # slow to import, and only text needs it

    offsets = np.append(bounds.reshape(-1), len(block))
    parts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    )
    first = np.arange(0, len(offsets) - 1, _PARTS)
    names = parts.take(pa.array(first)).dictionary_encode()

    def numbers(part: int) -> pl.Series:
        texts = pl.Series(values=parts.take(pa.array(first + part)), dtype=pl.Binary)
        return texts.cast(pl.String).cast(pl.Float64, strict=False)

    stamped = bool((bounds[:, 4] > bounds[:, 3]).any())
    stamp = numbers(4) if stamped else pl.repeat(None, len(first), dtype=pl.Float64, eager=True)
    value = numbers(2)
    return names.dictionary.to_pylist(), names.indices.to_numpy(), value, stamp
