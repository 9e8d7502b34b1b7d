"""Recognises text that comes back on line after line, on many lines at once.

The first line of a kind is read by an expression; what it and its like have in common becomes a
literal, and the others are compared with that eight bytes at a time.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from parsers.vllm_log.windows import Bools, Ints, Words

MAX_LITERALS = 128  # of one place; lines that have none of the first ones are read another way


class Literal(NamedTuple):
    """Text that stands at byte `at` of a window, and what a line that has it is."""

    text: bytes
    at: int
    meaning: int

    def on(self, columns: Words) -> Bools:
        """Tell which windows have it; row n of `columns` is the n-th word of all windows."""
        lead = self.at % 8
        trail = -(lead + len(self.text)) % 8
        words = np.frombuffer(bytes(lead) + self.text + bytes(trail), "<u8")
        masks = np.frombuffer(bytes(lead) + b"\xff" * len(self.text) + bytes(trail), "<u8")
        first = self.at // 8
        same: Bools = columns[first] & masks[0] == words[0]
        for column, mask, word in zip(columns[first + 1 :], masks[1:], words[1:], strict=False):
            same &= (column if mask == _ALL else column & mask) == word
        return same


_ALL = np.uint64((1 << 64) - 1)


def sorted_by_literals(
    columns: Words, left: Bools, read: Callable[[int], Literal | None]
) -> tuple[Ints, Ints]:
    """Find out for each window which literal it has.

    Args:
        columns: windows as `Literal.on` takes them.
        left: the windows to be looked at; cleared where one is done.
        read: makes a literal of the window of that number; None where none can be made of it.

    Returns:
        Per window the meaning of its literal and the length of its text; 0 where it has none.
    """
    meanings = np.zeros(len(left), np.int64)
    lengths = np.zeros(len(left), np.int64)
    for _ in range(MAX_LITERALS):
        at = int(left.argmax()) if len(left) else 0
        if not len(left) or not left[at]:
            break
        literal = read(at)
        if literal is None:
            left[at] = False
            continue
        same = literal.on(columns)
        same &= left
        np.putmask(meanings, same, literal.meaning)
        np.putmask(lengths, same, len(literal.text))
        left ^= same
    return meanings, lengths
