"""Changes a few rows of a large frame without copying the others.

Frames of large logs lie in memory-mapped files. Filtering or sorting would bring them into memory;
slices of them stay where they are, so new rows are put between slices.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl


def interleaved(main: pl.DataFrame, few: pl.DataFrame) -> pl.DataFrame:
    """Merge two frames that are ordered by `offset`; of equal ones those of `main` go first."""
    if not few.height:
        return main
    if not main.height:
        return few
    places = _places(main["offset"], few["offset"].to_numpy()).tolist()
    pieces: list[pl.DataFrame] = []
    done = 0
    start = 0
    for at, place in enumerate(places):
        if place != places[start]:
            pieces += [main[done : places[start]], few[start:at]]
            done, start = places[start], at
    pieces += [main[done : places[start]], few[start:], main[places[start] :]]
    return pl.concat([piece for piece in pieces if piece.height])


def _places(offsets: pl.Series, few: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return behind which of the rows each of a few offsets belongs."""
    places = np.zeros(len(few), np.int64)
    done = 0
    for chunk in offsets.get_chunks():  # as a whole they would be copied into memory
        values = chunk.to_numpy()
        if not len(values):
            continue
        begin = int(np.searchsorted(few, values[0]))
        end = int(np.searchsorted(few, values[-1], side="right"))
        places[begin:end] = done + np.searchsorted(values, few[begin:end], side="right")
        done += len(values)
        places[end:] = done
    return places


def changed_leading(
    frame: pl.DataFrame, rows: pl.Expr, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Change a frame up to the last row that an expression names."""
    last = frame.select(rows.arg_true().max()).item()
    if last is None:
        return frame
    return pl.concat([change(frame[: last + 1]), frame[last + 1 :]])


def changed_rows(
    frame: pl.DataFrame, rows: pl.Expr, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Change single rows that an expression names; `change` gets them all in one frame."""
    places = frame.select(rows.arg_true()).to_series().to_list()
    if not places:
        return frame
    new = change(frame[places])
    pieces: list[pl.DataFrame] = []
    done = 0
    for at, place in enumerate(places):
        pieces += [frame[done:place], new[at : at + 1]]
        done = place + 1
    pieces.append(frame[done:])
    return pl.concat([piece for piece in pieces if piece.height])
