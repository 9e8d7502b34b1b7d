"""Divides a plain file into stretches of whole lines that can be read apart.

No line that a container runtime cut stands at the end of a stretch: its rest is in the next line.
"""

import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

SEGMENT_BYTES = 16 << 20  # small, so that no process waits long for the other at the end
SEARCH_BYTES = 8 << 20  # how far behind a cut a line end is looked for

CUT_LINE = re.compile(rb'\S+ std(?:out|err) P |\{"log":"(?:[^"\\]|\\.)*(?<!\\n)","stream"')


class Task(NamedTuple):
    """A stretch to be read: of the file at `path`, or `data` itself.

    `end` is the offset behind it; up to there, `skipped` bytes of an overlong line follow `data`.
    """

    start: int
    end: int
    path: str | None
    data: bytes | memoryview = b""
    skipped: int = 0


def file_tasks(path: str, size: int, wanted: int = SEGMENT_BYTES) -> list[Task]:
    """Divide a plain file."""
    cuts = [0]
    with Path(path).open("rb") as file:
        while size - cuts[-1] > wanted * 3 // 2:
            cut = _line_end(file, cuts[-1] + wanted)
            if cut is None or cut >= size:
                break
            cuts.append(cut)
    return [Task(start, end, path) for start, end in zip(cuts, [*cuts[1:], size], strict=True)]


def _line_end(file: BinaryIO, near: int) -> int | None:
    file.seek(near)
    data = file.read(1 << 16)
    while data and data.count(b"\n") < 2 and len(data) < SEARCH_BYTES:
        more = file.read(1 << 20)
        if not more:
            break
        data += more
    first = data.find(b"\n")
    while first >= 0:
        second = data.find(b"\n", first + 1)
        if second < 0:
            return None
        if CUT_LINE.match(data, first + 1) is None:
            return near + second + 1
        first = second
    return None
