"""Byte offsets → line numbers and lines, computed only for what is shown."""

from collections.abc import Iterable
from dataclasses import dataclass

from forensics.evidence import SourceInfo

_CHUNK = 1 << 20
_LONGEST_SHOWN = 4096


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its one-based number and its text, cut at 4,096 bytes, bad bytes replaced."""

    number: int
    text: str


def locate(source: SourceInfo, offsets: Iterable[int]) -> dict[int, Line]:
    """Read a source again up to the last offset and give the lines that begin at the offsets.

    Args:
        source: where to look; one that cannot be opened again gives nothing.
        offsets: byte offsets of line starts in the decompressed source.

    Returns:
        Lines by offset; offsets past the end (a file that shrank) are left out.
    """
    wanted = sorted(set(offsets))
    found: dict[int, Line] = {}
    if not wanted or source.open is None:
        return found
    buffer = b""  # bytes from `start` on, not yet passed
    start = lines = 0
    try:
        with source.open() as stream:
            for offset in wanted:
                while start + len(buffer) < offset + _LONGEST_SHOWN:
                    if start + len(buffer) <= offset:
                        lines += buffer.count(b"\n")
                        start, buffer = start + len(buffer), b""
                    chunk = stream.read(_CHUNK)
                    if not chunk:
                        break
                    buffer += chunk
                if offset >= start + len(buffer):
                    break
                lines += buffer[: offset - start].count(b"\n")
                buffer, start = buffer[offset - start :], offset
                text = buffer[:_LONGEST_SHOWN].split(b"\n", 1)[0].rstrip(b"\r")
                found[offset] = Line(lines + 1, text.decode("utf-8", "replace"))
    except OSError:
        return found  # a file that vanished since: the figures stay, their lines are not shown
    return found
