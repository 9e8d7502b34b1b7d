"""Logs that must be read as a whole: newest first, or broken at the width of a terminal.

logcli and Grafana print the newest line first. Text copied from a terminal or a ticket is broken at
a fixed width, in the middle of words. Both are told by the head of a file and put right before the
lines are read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from parsers.envelopes import unwrap

WHOLE_BYTES = 256 << 20  # larger logs are read as they are
MIN_WIDTH = 60
MAX_WIDTH = 400

_HEAD = re.compile(
    rb"(?:\([A-Za-z]\w* pid=\d+\) )?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
    rb"(?: (?:\d{4}-)?\d\d-\d\d[ T]|: )"
)
Line = tuple[int, bytes]


def split(data: bytes) -> Iterator[Line]:
    """Yield (offset, line) of a text."""
    offset = 0
    for line in data.split(b"\n"):
        yield offset, line
        offset += len(line) + 1


def newest_first(head: bytes) -> bool:
    """Tell by the wrappers' stamps whether a log runs backwards."""
    stamps = [
        found.outer
        for _, line in split(head)
        for found in unwrap(line[:4096].decode(errors="replace"))
        if found.outer is not None
    ]
    return descending(stamps)


def descending(stamps: Sequence[float]) -> bool:
    """Tell whether stamps fall from first to last, but for a few."""
    falls = sum(later < earlier for earlier, later in pairwise(stamps))
    rises = sum(later > earlier for earlier, later in pairwise(stamps))
    return falls > 2 and falls > 9 * rises and stamps[-1] < stamps[0]


def broken_width(head: bytes) -> int | None:
    """Return the width at which records were broken into lines, if they were.

    It is the length of the longest line, most lines that are followed by one without a head have
    it, and hardly a line with a head does not run into it.
    """
    lines = [line.rstrip(b"\r") for _, line in split(head)][:2000]
    longest = max((len(line) for line in lines), default=0)
    if not MIN_WIDTH <= longest <= MAX_WIDTH:
        return None
    headed = [_HEAD.match(line) is not None for line in lines]
    if sum(headed) < 2:
        return None
    before = Counter(
        len(line)
        for line, following in zip(lines, headed[1:], strict=False)
        if not following and line
    )
    continued = sum(before.values())
    return longest if continued and before[longest] >= max(2, continued // 3) else None


def joined(lines: Iterator[Line], width: int) -> Iterator[Line]:
    """Put together what was broken at `width`: a full line goes on in the next one."""
    start, text = 0, b""
    for offset, raw in lines:
        line = raw.rstrip(b"\r")
        if text and _HEAD.match(line) is not None:
            yield start, text
            text = b""
        if not text:
            start = offset
        text += line
        if len(line) < width:
            yield start, text
            text = b""
    if text:
        yield start, text
