"""Sorts the bulk of a busy server's lines by looking at fixed places, many lines at once.

Nine lines in ten are access lines or request steps that are only counted. Where such a line says
what it is can be told from its ends: eight bytes are read at a place of every line and compared as
one integer. A line is counted here only if everything that the patterns ask of it holds; all others
are read one by one.
"""

from http import HTTPStatus
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.access import path_class

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

PAD = 128  # bytes around a chunk, so that words and windows can be read at any place of it

STEPS = ("received", "added", "finished")
STATS = -1
RECEIVED, ADDED, FINISHED = 1, 2, 3
CLASSES = ("api", "metrics", "health", "other")
_STATUS_BASE = 16

_DIGITS = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 13])
_MARKS = np.array([2, 5, 8, 11])
_MARK_CODES = np.frombuffer(b"- ::", np.uint8)
_WIDTH = 32  # bytes of a window in which a mark is looked for
_MONTH_DAYS = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE = np.cumsum(_MONTH_DAYS) - _MONTH_DAYS
_YEAR_START = 730  # days from 1970 to 1972


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text[:8].ljust(8, b"\0"), "little"))


_INFO_ACCESS = _word(b"INFO:   ")
_INFO_STAMP = _word(b"INFO ")
_THREE = np.uint64((1 << 24) - 1)
_FIVE = np.uint64((1 << 40) - 1)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_DASH = _word(b" - ")
_REQUEST = _word(b"request ")
_STEP_WORDS = (  # first word, where "request " stands, code
    (_word(b"Received"), 9, 1),
    (_word(b"Added re"), 6, 2),
    (_word(b"Finished"), 9, 3),
)
_STATS_BEGINNINGS = (_word(b"Engine 0"), _word(b"Avg prom"))
_HTTP = _word(b" HTTP/1.")
_COLOUR_END = _word(b")\x1b[0;0m ")
_ENDINGS = {int(status): f'" {int(status)} {status.phrase}'.encode() for status in HTTPStatus}
_BY_LAST: dict[int, list[int]] = {}
for _status, _ending in _ENDINGS.items():
    _BY_LAST.setdefault(int(_word(_ending[-8:])), []).append(_status)
_OK = _word(_ENDINGS[200])


class Sorted(NamedTuple):
    """The lines of a chunk, sorted.

    Attributes:
        starts / ends: places of the lines in the buffer, without line feeds.
        heads: where the record begins, behind one process prefix.
        codes: per line 0 for one to be read by itself, STATS for one that looks like a plain stats
            line, else what is counted; see `label_of`.
        stamps: per line the yearless stamp of a counted request step; NaN elsewhere.
    """

    starts: Ints
    ends: Ints
    heads: Ints
    codes: Ints
    stamps: Floats


def label_of(code: int) -> tuple[str, str]:
    """Return label and detail of a tally for a code."""
    if code < _STATUS_BASE:
        return "request", STEPS[code - 1]
    status, detail = divmod(code - _STATUS_BASE, len(CLASSES))
    return str(status), CLASSES[detail]


def code_of(label: str, detail: str) -> int:
    """Return the code of a tally; the inverse of `label_of`."""
    if label == "request":
        return STEPS.index(detail) + 1
    return _STATUS_BASE + int(label) * len(CLASSES) + CLASSES.index(detail)


class _Chunk:
    """A buffer seen as bytes, as words at every place, and as windows at every place."""

    def __init__(self, buffer: bytearray, end: int) -> None:
        self._buffer = buffer
        self.data: Bytes = np.frombuffer(buffer, np.uint8)
        self.words: Words = np.ndarray((len(buffer) - 8,), "<u8", buffer, 0, (1,))
        self.ends: Ints = _places_of(10, self.data[PAD:end]) + PAD
        self.starts = np.empty_like(self.ends)
        self.starts[:1] = PAD
        self.starts[1:] = self.ends[:-1] + 1
        # A carriage return before the line feed belongs to neither.
        self.tails = self.ends - (self.data[self.ends - 1] == 13)
        self.heads = self._heads()

    def window(self, places: Ints, width: int) -> Bytes:
        """Return `width` bytes at each place, one row each."""
        # Whole items of that width are gathered faster than rows of bytes.
        count = len(self.data) - width
        items = np.ndarray((count,), f"V{width}", self._buffer, 0, (1,))
        return items[places].view(np.uint8).reshape(-1, width)

    def first_of(self, code: int, places: Ints) -> Ints:
        """Return where a byte first occurs in the 32 from each place on; the place where not."""
        found = np.packbits(self.window(places, _WIDTH) == code, bitorder="little")
        bits = found.view("<u4").astype(np.int64)
        lowest = bits & -bits
        # A power of two as a float is its exponent, and zero has the smallest one.
        shifts = (lowest.astype(np.float64).view(np.int64) >> 52) - 1023
        first: Ints = places + np.maximum(shifts, 0)
        return first

    def _heads(self) -> Ints:
        begins = self.data[self.starts]
        prefixed = np.flatnonzero((begins == 40) | (begins == 27))
        if not len(prefixed):
            return self.starts
        heads = self.starts.copy()
        at = self.starts[prefixed]
        close = self.window(at, 48) == 41
        behind = at + close.argmax(axis=1)
        skipped = np.where(self.words[behind] == _COLOUR_END, 8, 2)
        # Without a closing bracket in sight, and where a line is shorter, the line is its own head.
        inside = close.any(axis=1) & (behind + skipped < self.tails[prefixed])
        heads[prefixed] = np.where(inside, behind + skipped, at)
        return heads


def _places_of(code: int, data: Bytes) -> Ints:
    """Return where a rare byte occurs: words that hold it are found first, then it in them."""
    found = np.empty(-(-len(data) // 8) * 8, np.bool_)
    np.equal(data, code, out=found[: len(data)])
    found[len(data) :] = False
    words = found.view(np.uint64)
    holding = np.flatnonzero(words != 0)
    inside = np.flatnonzero(words[holding].view(np.bool_))
    places: Ints = (holding[inside >> 3] << 3) + (inside & 7)
    return places


def sort_lines(buffer: bytearray, end: int) -> Sorted:
    """Sort the lines between PAD and `end` of a buffer; there is a line feed before `end`.

    Args:
        buffer: has PAD bytes before and behind the lines.
        end: the place behind the last line feed.
    """
    chunk = _Chunk(buffer, end)
    codes = np.zeros(len(chunk.ends), np.int64)
    stamps = np.full(len(chunk.ends), np.nan)
    first = chunk.words[chunk.heads]
    access = np.flatnonzero(first == _INFO_ACCESS)
    if len(access):
        codes[access] = _access_codes(chunk, access)
    stamped = np.flatnonzero((first & _FIVE) == _INFO_STAMP)
    if len(stamped):
        _message_codes(chunk, stamped, codes, stamps)
    return Sorted(chunk.starts, chunk.ends, chunk.heads, codes, stamps)


def _access_codes(chunk: _Chunk, access: Ints) -> Ints:
    heads, tails = chunk.heads[access], chunk.tails[access]
    statuses, closing = _statuses(chunk, tails)
    opening = chunk.first_of(34, heads + 8)
    far = np.flatnonzero(chunk.data[opening] != 34)
    if len(far):
        # IPv6 addresses are longer.
        opening[far] += (chunk.window(heads[far] + 8, 80) == 34).argmax(axis=1)
    # Before the quotes: "client - "; between them: METHOD PATH HTTP/1.x.
    good = (statuses > 0) & (chunk.data[opening] == 34) & (opening + 9 < closing)
    good &= (chunk.words[opening - 3] & _THREE) == _DASH
    good &= chunk.words[closing - 9] == _HTTP
    digit = chunk.data[closing - 1]
    good &= (digit >= 48) & (digit <= 57)
    classes = _classes(chunk.words, opening + 1)
    good &= classes >= 0
    return np.where(good, _STATUS_BASE + statuses * len(CLASSES) + classes, 0)


def _statuses(chunk: _Chunk, tails: Ints) -> tuple[Ints, Ints]:
    """Return the status of lines that end in `" NNN Reason`, and where that ending begins.

    The reason must be the one HTTP gives the status; other lines get 0.
    """
    words = chunk.words
    last = words[tails - 8]
    closing = tails - 8
    fine = last == _OK
    statuses = np.where(fine, 200, 0)
    rest = np.flatnonzero(~fine)
    for key in np.unique(last[rest]):
        for status in _BY_LAST.get(int(key), ()):
            ending = _ENDINGS[status]
            same = rest[last[rest] == key]
            begins = tails[same] - len(ending)
            alike = begins >= PAD
            begins = np.maximum(begins, 0)
            for at in range(0, len(ending) - 8, 8):
                alike &= words[begins + at] == _word(ending[at : at + 8])
            statuses[same[alike]] = status
            closing[same[alike]] = begins[alike]
    return statuses, closing


def _classes(words: Words, paths: Ints) -> Ints:
    """Return the class of each path, or -1 where sixteen bytes do not tell it."""
    classes = np.full(len(paths), -1, np.int64)
    first, second = words[paths], words[paths + 8]
    left = np.ones(len(paths), np.bool_)
    for _ in range(64):
        at = int(left.argmax()) if len(left) else 0
        if not len(left) or not left[at]:
            break
        one, two = first[at], second[at]
        same = first == one
        same &= second == two
        told = _class_of(int(one).to_bytes(8, "little") + int(two).to_bytes(8, "little"))
        if told is not None:
            np.putmask(classes, same, CLASSES.index(told))
        left &= ~same
    return classes


def _class_of(shown: bytes) -> str | None:
    """Tell the class of a path from the beginning of ``METHOD PATH ``, if that is enough."""
    method, blank, path = shown.partition(b" ")
    if not blank or not method.isalpha() or not method.isupper() or not path.startswith(b"/"):
        return None
    bare, ended, _ = path.partition(b" ")
    text = bare.decode("ascii", "replace")
    if text.startswith(("/v1/", "/metrics")):
        return path_class(text)
    return path_class(text) if ended else None


def _message_codes(chunk: _Chunk, stamped: Ints, codes: Ints, stamps: Floats) -> None:
    """Sort lines with a vLLM head by the first words of their message."""
    places = chunk.heads[stamped]
    tails = chunk.tails[stamped]
    messages = chunk.first_of(93, places + 20) + 2
    far = np.flatnonzero(chunk.data[messages - 2] != 93)
    if len(far):
        messages[far] = chunk.first_of(93, places[far] + 20 + _WIDTH) + 2
    near = (chunk.data[messages - 2] == 93) & (messages < tails)
    verbs = chunk.words[messages] * near
    for beginning in _STATS_BEGINNINGS:
        codes[stamped[verbs == beginning]] = STATS
    taken = np.zeros(len(stamped), np.int64)
    for verb, shift, code in _STEP_WORDS:
        chosen = np.flatnonzero(verbs == verb)
        good = chunk.words[messages[chosen] + shift] == _REQUEST
        if code > 1:
            good &= chunk.data[tails[chosen] - 1] == 46
        taken[chosen[good]] = code
    lines = np.flatnonzero(taken)
    when = _stamps(chunk, places[lines] + 5)
    places = stamped[lines]
    # Without a stamp it is no plain line.
    codes[places] = np.where(np.isnan(when), 0, taken[lines])
    stamps[places] = when


def _stamps(chunk: _Chunk, places: Ints) -> Floats:
    """Read the stamp at each place; most lines have that of the line before."""
    if not len(places):
        return np.empty(0)
    day, time = chunk.words[places], chunk.words[places + 6]
    new = np.empty(len(places), np.bool_)
    new[0] = True
    np.not_equal(day[1:], day[:-1], out=new[1:])
    new[1:] |= time[1:] != time[:-1]
    stamps: Floats = stamps_at(chunk.window(places[new], 14))[np.cumsum(new) - 1]
    return stamps


def stamps_at(window: Bytes) -> Floats:
    """Read rows of ``MM-DD HH:MM:SS`` as `header.yearless` does; NaN for what is none."""
    if not len(window):
        return np.empty(0)
    digits = window[:, _DIGITS] - np.uint8(48)  # what is below "0" wraps round to above 9
    valid = (digits.max(axis=1) <= 9) & (window[:, _MARKS] == _MARK_CODES).all(axis=1)
    month, day, hour, minute, second = np.ascontiguousarray(
        (digits[:, 0::2] * np.uint8(10) + digits[:, 1::2]).T
    ).astype(np.int64)
    valid &= (month >= 1) & (month <= 12) & (hour <= 23) & (minute <= 59) & (second <= 60)
    month = np.clip(month, 1, 12)
    valid &= (day >= 1) & (day <= _MONTH_DAYS[month - 1])
    days = _YEAR_START + _DAYS_BEFORE[month - 1] + day - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return np.where(valid, seconds.astype(np.float64), np.nan)
