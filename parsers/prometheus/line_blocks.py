"""Cuts a stream into blocks of whole lines, with a bound on the length of a line."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

BLOCK_BYTES = 8 << 20
"""Bytes per block: large enough for bulk conversion, small beside the file."""

MAX_LINE_BYTES = 256 << 20
"""A longer line is damage. VictoriaMetrics writes a whole series into one line."""


def line_blocks(
    stream: BinaryIO, damaged: Callable[[int, str], None]
) -> Iterator[tuple[bytes, int, int]]:
    """Yield blocks of whole lines, each ending with a line end, and where they start and stop.

    Args:
        stream: the bytes; the last line end may be missing and is then added.
        damaged: told of (offset, reason) of lines that are too long.
    """
    parts: list[bytes] = []
    base = 0
    held = 0
    skipping = False
    while block := stream.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if end == 0 or skipping:
            if skipping and end:
                start = block.find(b"\n") + 1
                base += start
                parts, held, skipping = [block[start:]], len(block) - start, False
                continue
            if held + len(block) > MAX_LINE_BYTES or skipping:
                if not skipping:
                    damaged(base, "a line without an end")
                base += held + len(block)
                parts, held, skipping = [], 0, True
                continue
            parts.append(block)
            held += len(block)
            continue
        whole = b"".join([*parts, block[:end]]) if parts else block[:end]
        yield whole, base, base + len(whole)
        base += len(whole)
        parts = [block[end:]] if end < len(block) else []
        held = len(block) - end
    rest = b"".join(parts)
    if rest:
        yield rest + b"\n", base, base + len(rest)
