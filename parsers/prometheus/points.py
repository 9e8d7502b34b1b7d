r"""Turns the text of ``[time,"value"]`` pairs into columns of numbers.

Prometheus writes the points of a series as ``[[1776303540.053,"8"],[1776303555.053,"44"]]``. The
brackets between pairs become line ends, and what is left is a table that a CSV reader takes in
bulk. When that table is not perfect, the pairs are read one by one and the bad ones are counted.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from parsers.prometheus.rows import Floats

_SCHEMA = {"stamp": pl.Float64(), "value": pl.Float64(), "rest": pl.String()}
_NUMBER = rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_PAIR = re.compile(
    rb"\[\s*(" + _NUMBER + rb')\s*,\s*"?(' + _NUMBER + rb'|[-+]?Inf|NaN)"?\s*\]', re.IGNORECASE
)
_OPENING = re.compile(rb"\[")
_WHITE = b" \t\r\n"

Damaged = Callable[[int, int], None]
"""Called with (index of the region, offset within it) of a pair that is no pair of numbers."""


def read_pairs(
    regions: Sequence[bytes | memoryview], pairs: Sequence[int], damaged: Damaged
) -> tuple[Floats, Floats, Sequence[int]]:
    """Read the pairs of several series.

    Args:
        regions: per series whole pairs with commas between them.
        pairs: opening brackets per region.
        damaged: told of each place that is no pair.

    Returns:
        Stamps, values (one row per pair, region after region) and the number of rows per region.

    Example:
        >>> read_pairs([b'[1,"2"],[3,"+Inf"]'], [2], lambda region, offset: None)[1].tolist()
        [2.0, inf]
    """
    frame = _table(regions)
    if frame is not None and frame.height == sum(pairs):
        return frame["stamp"].to_numpy(), frame["value"].to_numpy(), pairs
    return _one_by_one(regions, damaged)


_TO_LINES = bytes.maketrans(b"[", b"\n")


def _table(regions: Sequence[bytes | memoryview]) -> pl.DataFrame | None:
    """Read lines of ``stamp,value,``; None when any of them is anything else."""
    if not regions:
        return None
    text = b",".join([*regions, b""]).translate(_TO_LINES, b'"]' + _WHITE)
    try:
        frame = pl.read_csv(
            text[text.find(b"\n") + 1 :], has_header=False, schema=_SCHEMA, quote_char=None
        )
    except pl.exceptions.PolarsError:
        return None
    return frame if frame.null_count().row(0) == (0, 0, frame.height) else None


def _one_by_one(
    regions: Sequence[bytes | memoryview], damaged: Damaged
) -> tuple[Floats, Floats, list[int]]:
    """Read pairs singly and tell of everything between them that is not a comma or white space."""
    stamps: list[float] = []
    values: list[float] = []
    counts = []
    for index, view in enumerate(regions):
        region = bytes(view)
        before = len(stamps)
        end = 0
        for pair in _PAIR.finditer(region):
            if region[end : pair.start()].strip(b"," + _WHITE):
                damaged(index, end)
            stamps.append(float(pair[1]))
            values.append(float(pair[2]))
            end = pair.end()
        if region[end:].strip(b"," + _WHITE):
            damaged(index, end)
        counts.append(len(stamps) - before)
    return np.array(stamps, np.float64), np.array(values, np.float64), counts
