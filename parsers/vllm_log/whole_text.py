"""Logs that must be read as a whole: newest first, or broken at the width of a terminal.

logcli and Grafana print the newest line first. Text copied from a terminal or a ticket is broken at
a fixed width, in the middle of words; mail programs break it between words, and put a mark before
each line of it. All are told by the head of a file and put right before the lines are read.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from parsers.envelopes import unwrap
from parsers.vllm_log.header import read_head

WHOLE_BYTES = 256 << 20  # larger logs are read as they are
MIN_WIDTH = 60
MAX_WIDTH = 400

_HEAD = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|[\w.-]+ +\| |\{\"|"
    rb"(?:\([A-Za-z]\w* pid=\d+\) ?)*(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
    rb"(?: (?:\d{4}-)?\d\d-\d\d[ T]|: )"
)
_BROKEN_STATS = re.compile(rb"Avg prompt(?!.*KV cache usage: [\d.]+%)")
_BEGINNING_WORD = re.compile(rb"\S+")
Line = tuple[int, bytes]


def split(data: bytes) -> Iterator[Line]:
    """Yield (offset, line) of a text."""
    offset = 0
    for line in data.split(b"\n"):
        yield offset, line
        offset += len(line) + 1


def newest_first(head: bytes) -> bool:
    """Tell by the stamps whether a log runs backwards: the wrappers', else the server's own."""
    outer: list[float] = []
    own: list[float] = []
    for _, line in split(head):
        for found in unwrap(line[:4096].decode(errors="replace")):
            if found.outer is not None:
                outer.append(found.outer)
            elif (stamp := read_head(found.body).stamp) is not None:
                own.append(stamp)
    return descending(outer or own)


def descending(stamps: Sequence[float]) -> bool:
    """Tell whether stamps fall from first to last, but for a few."""
    falls = sum(later < earlier for earlier, later in pairwise(stamps))
    rises = sum(later > earlier for earlier, later in pairwise(stamps))
    return falls > 2 and falls > 9 * rises and stamps[-1] < stamps[0]


class Break(NamedTuple):
    """How the lines of a text were broken.

    Attributes:
        width: characters of a full line.
        between_words: lines end where the next word would not have fitted, and a blank was lost.
        mark: what a mail program put before each line.
    """

    width: int
    between_words: bool
    mark: bytes


def broken(head: bytes) -> Break | None:
    """Tell how records were broken into lines, if they were.

    The width is the length of the longest line. Lines that are followed by one without a head are
    full: a third of them to the last character, or nearly all up to the next word.
    """
    lines = [line.rstrip(b"\r") for _, line in split(head)][:2000]
    quoted = sum(line.startswith(b">") for line in lines)
    mark = b"> " if quoted > 1 and quoted >= len([line for line in lines if line]) - 1 else b""
    lines = [_unmarked(line, mark) for line in lines]
    longest = max((_length(line) for line in lines), default=0)
    if not MIN_WIDTH <= longest <= MAX_WIDTH:
        return None
    headed = [_HEAD.match(line) is not None for line in lines]
    continued = [
        (line, following)
        for (line, following), begins in zip(pairwise(lines), headed[1:], strict=True)
        if line and not begins
    ]
    full = [line for line, _ in continued if _length(line) == longest]
    if any(_BROKEN_STATS.search(line) and _HEAD.match(line) for line in full) and sum(headed) < 2:
        return Break(longest, False, mark)
    filled = [pair for pair in continued if _filled(*pair, longest)]
    if sum(headed) < 2 or len(filled) < 2:
        return None
    if len(full) * 10 >= len(filled) * 8:
        return Break(longest, False, mark) if len(full) >= max(2, len(continued) // 3) else None
    within = sum(bool(following) for _, following in continued)
    return Break(longest, True, mark) if len(filled) * 10 > within * 8 else None


def joined(lines: Iterator[Line], how: Break) -> Iterator[Line]:
    """Put together what was broken: a full line goes on in the next one."""
    start, text, last = 0, b"", b""
    for offset, raw in lines:
        line = _unmarked(raw.rstrip(b"\r"), how.mark)
        full = _filled(last, line, how.width) if how.between_words else _length(last) >= how.width
        if text and (not full or _HEAD.match(line) is not None):
            yield start, text
            text = b""
        if not text:
            start = offset
        text += b" " + line if how.between_words and text else line
        last = line
    if text:
        yield start, text


def _length(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode(errors="replace"))


def _filled(line: bytes, following: bytes, width: int) -> bool:
    """Tell whether the first word of the next line would not have fitted into this one."""
    word = _BEGINNING_WORD.match(following)
    return word is not None and _length(line) + 1 + _length(word[0]) > width


def _unmarked(line: bytes, mark: bytes) -> bytes:
    return line.removeprefix(mark) if line.startswith(mark) else line.removeprefix(mark.strip())
