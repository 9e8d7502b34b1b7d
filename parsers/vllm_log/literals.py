"""Recognises text that comes back on line after line, on many lines at once.

The first line of a kind is read by an expression; what it and its like have in common becomes a
literal, and the others are compared with that eight bytes at a time.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from parsers.vllm_log.windows import Bools, Ints, Words

MAX_LITERALS = 128  # of one place; lines that have none of the first ones are read another way


class Literal(NamedTuple):
    """Text that stands at byte `at` of a window, and what a line that has it is.

    Of the text only the bits of `mask` are compared, if it is not empty.
    """

    text: bytes
    at: int
    meaning: int
    mask: bytes = b""

    def on(self, columns: Words) -> Bools:
        """Tell which windows have it; row n of `columns` is the n-th word of all windows."""
        (first, mask, word), *rest = _words(self.text, self.at, self.mask)
        same: Bools = columns[first] & mask == word
        for column, mask, word in rest:
            same &= (columns[column] if mask == _ALL else columns[column] & mask) == word
        return same


_ALL = np.uint64((1 << 64) - 1)


@lru_cache(maxsize=4096)
def _words(text: bytes, at: int, mask: bytes) -> tuple[tuple[int, np.uint64, np.uint64], ...]:
    """Return which words of a window a text lies in, which of their bits, and what these are."""
    lead, trail = bytes(at % 8), bytes(-(at + len(text)) % 8)
    masks = np.frombuffer(lead + (mask or b"\xff" * len(text)) + trail, "<u8")
    words = np.frombuffer(lead + text + trail, "<u8") & masks
    return tuple(zip(range(at // 8, at // 8 + len(words)), masks, words, strict=True))


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
    which = np.zeros(len(left), np.uint8)
    meanings, lengths = [0], [0]
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
        np.putmask(which, same, len(meanings))
        meanings.append(literal.meaning)
        lengths.append(len(literal.text))
        left ^= same
    return np.array(meanings)[which], np.array(lengths)[which]
