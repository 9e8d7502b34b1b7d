"""The shape of a wrapped line: what stands before and behind the record, and what of it varies.

A container tool puts the same text around each line of a server, but for a time stamp. The shape
is read off one line: a text is a wrapper if `unwrap` takes exactly that off a plain record. Lines
that have the same text, and other digits from the stamp's minute on, say the same of themselves.
"""

import re
from itertools import islice
from typing import NamedTuple

from parsers.envelopes import Unwrapped, unwrap
from parsers.envelopes.stamps import RFC3339, dated

MAX_BYTES = 192  # before or behind the record

_RECORD = "INFO 01-15 00:00:00 [a.py:1] b"
_BARE = re.compile(rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-|:  )")
_BEGINS = re.compile(rb"\x1b|\(|INFO[: ]")
_QUOTED_BEGINS = re.compile(rb'"(?=\\u001b|\(|INFO[: ])')
_QUOTED_BODY = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\(?!n").)*+')
_FIXED = re.compile(rb"[ -~]*")
_COLOUR = re.compile(rb"\[[\d;]*m")
_STAMP = re.compile(rf"(?<!\d){RFC3339}")
_CLOCK = re.compile(r"(?<!\d)\d\d:(?P<rest>\d\d:\d\d)(?P<fraction>[.,]\d+)?(?!\d)")
_MAX_DIGITS = 9
_MAX_TRIES = 3  # of places in a line that may begin a record


class Stamp(NamedTuple):
    """A time in a wrapper: the hour is fixed, ``MM:SS`` and the digits of a fraction vary.

    Attributes:
        at: where the minute begins.
        behind: whether that is in the text behind the record.
        digits: of the fraction, which follows with a point.
        hour: when the hour began, by the clock of the stamp; None where the stamp says nothing.
        shift: what that clock is ahead of UTC, seconds.
    """

    at: int
    behind: bool
    digits: int
    hour: float | None
    shift: float


class Shape(NamedTuple):
    """What is around a record.

    Attributes:
        before / behind: the text; digits that vary are those of `stamp`.
        quoted: the record is a JSON string, in which quotes and backslashes are escaped.
        instance / stream / cut: as `Unwrapped` says of a line; `cut` is its `partial`.
    """

    before: bytes
    behind: bytes
    quoted: bool
    stamp: Stamp | None
    instance: str | None
    stream: str | None
    cut: bool


def shape_of(line: bytes) -> Shape | None:
    """Read the shape off a line without its line end; None where a record is not found in it."""
    if _BARE.match(line) is not None:
        return None
    if line.startswith(b"{"):
        begin = _QUOTED_BEGINS.search(line, 0, MAX_BYTES)
        if begin is None:
            return None
        body = _QUOTED_BODY.match(line, begin.end())
        return (
            None if body is None else _checked(line[: begin.end()], line[body.end() :], quoted=True)
        )
    for begin in islice(_BEGINS.finditer(line, 0, MAX_BYTES), _MAX_TRIES):
        shape = _checked(line[: begin.start()], b"", quoted=False)
        if shape is not None:
            return shape
    return None


def _checked(before: bytes, behind: bytes, *, quoted: bool) -> Shape | None:
    around = before + behind
    if not before or max(len(before), len(behind)) > MAX_BYTES:
        return None
    if _FIXED.fullmatch(around) is None or _COLOUR.search(around) is not None:
        return None
    head, tail = before.decode("ascii"), behind.decode("ascii")
    found = _inside(head, tail)
    if found is None or (quoted and _inside(head, tail, "b") is None):
        return None  # with a level beside the text, its head decides whose the stamp is
    stamp = _stamp(head, tail, found)
    if stamp is not None and not _holds(stamp, head, tail, found):
        return None
    if stamp is None and found.outer is not None:
        return None
    said = found.instance, found.stream, found.partial
    return Shape(before, behind, quoted, stamp, *said)


def _inside(head: str, tail: str, text: str = _RECORD) -> Unwrapped | None:
    """Unwrap a record; None where that does not give it, or gives it a stamp of its own."""
    found = list(unwrap(head + text + tail))
    if len(found) != 1 or found[0].body != text or found[0].own is not None:
        return None
    return found[0]


def _stamp(head: str, tail: str, found: Unwrapped) -> Stamp | None:
    """Find the stamp that varies: the one that `found` has, or a time that says nothing."""
    for text, behind in ((head, False), (tail, True)):
        for match in (_CLOCK if found.outer is None else _STAMP).finditer(text):
            digits = max(len(match["fraction"] or "") - 1, 0)
            if digits > _MAX_DIGITS:
                continue
            if found.outer is None:
                return Stamp(match.start("rest"), behind, digits, None, 0.0)
            hour = match["date"], match["time"][:2] + ":00:00", None
            local, utc = dated(*hour, None), dated(*hour, match["zone"])
            when = dated(match["date"], match["time"], match["fraction"], match["zone"])
            if when == ("utc", found.outer) and local is not None and utc is not None:
                at = match.start("time") + 3
                return Stamp(at, behind, digits, local[1], local[1] - utc[1])
    return None


def _holds(stamp: Stamp, head: str, tail: str, found: Unwrapped) -> bool:
    """Check that nothing but the stamp changes with its digits."""
    text = tail if stamp.behind else head
    end = stamp.at + 5
    varied = text[: stamp.at] + "12:34" + text[end:]
    outer = None
    if stamp.digits:
        varied = varied[: end + 1] + "5" * stamp.digits + varied[end + 1 + stamp.digits :]
    if stamp.hour is not None:
        outer = stamp.hour + 754.0 + (float("0." + "5" * stamp.digits) if stamp.digits else 0.0)
        outer -= stamp.shift
    again = _inside(head, varied) if stamp.behind else _inside(varied, tail)
    return again == found._replace(outer=outer)
