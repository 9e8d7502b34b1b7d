"""Turns the rows of a log into tables."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl
import pyarrow as pa

from forensics.evidence import EVENTS, FACTS
from parsers.vllm_log.records import Statement
from parsers.vllm_log.rows import Columns, Rows, columns

NAMES = [name for name in EVENTS if name != "source"]
_TYPES = {"offset": pa.uint64(), "stamp": pa.float64(), "outer": pa.float64()}
_SHARED_ROWS = 1 << 16


def events_frame(rows: Rows | Columns) -> pl.DataFrame:
    """Lay rows in a frame; schema EVENTS without `source`."""
    laid = columns(rows) if isinstance(rows, Rows) else rows
    if not laid.height:
        return pl.DataFrame(schema={name: EVENTS[name] for name in NAMES})
    arrays = {
        name: pa.Array.from_buffers(
            _TYPES.get(name, pa.string_view()),
            laid.height,
            [None if buffer is None else pa.py_buffer(buffer) for buffer in column.buffers],
        )
        for name, column in laid.columns.items()
        if column.buffers
    }
    frame = pl.from_arrow(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)))
    assert isinstance(frame, pl.DataFrame)
    constants = [
        _constant(name, column.constant, laid.height)
        for name, column in laid.columns.items()
        if not column.buffers
    ]
    return frame.with_columns(constants).select(NAMES)


def _constant(name: str, value: str | None, height: int) -> pl.Series:
    if height > _SHARED_ROWS:
        return pl.repeat(value, height, dtype=EVENTS[name], eager=True).alias(name)
    return _shared(name, value)[:height]


@lru_cache(maxsize=32)
def _shared(name: str, value: str | None) -> pl.Series:
    """Return a column of one value, of which others are slices: many stretches have the same."""
    return pl.repeat(value, _SHARED_ROWS, dtype=EVENTS[name], eager=True).alias(name)


def facts_frame(statements: Sequence[Statement]) -> pl.DataFrame:
    """Lay statements in a frame; schema FACTS without `source`."""
    return pl.DataFrame(
        [(*row.place[: len(row.place) - 1], row.fact.key, row.fact.value) for row in statements],
        schema={name: dtype for name, dtype in FACTS.items() if name != "source"},
        orient="row",
    )
