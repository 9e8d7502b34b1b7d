"""Cuts a stream into blocks of whole lines, with a bound on the length of a line."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

BLOCK_BYTES = 4 << 20
"""Bytes per block: about what stays in the processor's cache, and enough for bulk work."""

MAX_LINE_BYTES = 256 << 20
"""A longer line is damage. VictoriaMetrics writes a whole series into one line."""


def line_blocks(
    stream: BinaryIO, damaged: Callable[[int, str], None]
) -> Iterator[tuple[bytes, int, int]]:
    """Yield blocks of whole lines, each ending with a line end, and where they start and stop.

    Args:
        stream: the bytes; the last line end may be missing and is then added.
        damaged: told of (offset, reason) of lines that are too long; an empty block follows each.
    """
    base = 0
    while block := stream.read(BLOCK_BYTES):
        if not block.endswith(b"\n"):
            block += stream.readline(MAX_LINE_BYTES)
        end = base + len(block)
        if block.endswith(b"\n"):
            yield block, base, end
        elif len(block) < MAX_LINE_BYTES:
            yield block + b"\n", base, end
        else:
            whole = block.rfind(b"\n") + 1
            if whole:
                yield block[:whole], base, base + whole
            damaged(base + whole, "a line without an end")
            while (rest := stream.readline(BLOCK_BYTES)) and not rest.endswith(b"\n"):
                end += len(rest)
            end += len(rest)
            yield b"", end, end
        base = end
