"""Clock changes within a log: where its clock jumped by an hour, and how far each part is ahead.

A clock put back shows as a jump of an hour back. A jump of an hour ahead is a clock put forward, or
just a pause: only what the metrics say of the part behind it tells which.
"""

from collections.abc import Sequence

import numpy as np

HOUR = 3600.0
# A clock change shows as a jump of one hour, give or take what passes between two lines.
_JUMP_TOLERANCE_S = 120.0
# Lines of another process that still carry the old hour when the clock was put back.
_INTERLEAVED_ROWS = 20


def pieces_of(local: np.ndarray, known: np.ndarray) -> list[np.ndarray]:
    """Split rows at jumps of about an hour.

    Args:
        local: stamps in the log's own clock, in file order, shape (n,); NaN where there is none.
        known: which rows have one; shape (n,).

    Returns:
        Row numbers of each piece, in order; together all rows.
    """
    rows = np.flatnonzero(known)
    steps = np.diff(local[rows])
    back = np.abs(steps + HOUR) < _JUMP_TOLERANCE_S
    ahead = np.abs(steps - HOUR) < _JUMP_TOLERANCE_S
    cuts = rows[1:][back | ahead]
    return [piece for piece in np.split(np.arange(local.size), cuts) if piece.size]


def spread(
    pieces: list[np.ndarray], found: Sequence[float | None], local: np.ndarray
) -> np.ndarray:
    """Give each row its piece's offset; a piece without one follows its neighbour.

    A clock that jumps back an hour was put back; one that jumps ahead an hour was put forward only
    if it jumped back before (lines of several processes interleave), else the log just paused.

    Args:
        pieces: as `pieces_of` gives them.
        found: offset of each piece, seconds; None where it is not known.
        local: stamps in the log's own clock, shape (n,).

    Returns:
        Seconds ahead of UTC, shape (n,); from 0 on where no piece is known.
    """
    offsets = np.zeros(local.shape)
    first = next((index for index, offset in enumerate(found) if offset is not None), 0)
    changes = [_change(local, pieces, index) if index else 0.0 for index in range(len(pieces))]
    now = (found[first] or 0.0) - sum(changes[: first + 1])
    for piece, change, matched in zip(pieces, changes, found, strict=True):
        now = matched if matched is not None else now + change
        offsets[piece] = now
    return offsets


def _change(local: np.ndarray, pieces: list[np.ndarray], index: int) -> float:
    """Give what the clock was put forward (positive) or back before a piece, seconds."""
    if _step(local, pieces, index) < 0:
        return -HOUR
    returned = index > 1 and _step(local, pieces, index - 1) < 0
    return HOUR if returned and pieces[index - 1].size <= _INTERLEAVED_ROWS else 0.0


def _step(local: np.ndarray, pieces: list[np.ndarray], index: int) -> float:
    before, after = local[pieces[index - 1]], local[pieces[index]]
    return float(after[~np.isnan(after)][0] - before[~np.isnan(before)][-1])
