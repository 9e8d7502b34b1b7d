"""Sorts the bulk of a busy server's lines by looking at fixed places, many lines at once.

Nine lines in ten are access lines or request steps that are only counted. Where such a line says
what it is can be told from its ends: eight bytes are read at a place of every line and compared as
one integer. A line is counted here only if everything that the patterns ask of it holds; all others
are read one by one.
"""

from http.client import responses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.access import path_class

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PAD = 128  # zero bytes behind a chunk, so that a word can be read at any place of it
_LEAD = 64  # and spaces before it

_DIGITS = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 13])
_MARKS = np.array([2, 5, 8, 11])
_MARK_CODES = np.frombuffer(b"- ::", np.uint8)
_MONTH_DAYS = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE = np.cumsum(_MONTH_DAYS) - _MONTH_DAYS
_YEAR_START = 730  # days from 1970 to 1972

STEPS = ("received", "added", "finished")
STATS = -1
CLASSES = ("api", "metrics", "health", "other")
_STATUS_BASE = 16


def _word(text: bytes) -> int:
    return int.from_bytes(text[:8].ljust(8, b"\0"), "little")


_INFO_ACCESS = _word(b"INFO:   ")
_INFO_STAMP = _word(b"INFO \0\0\0")
_FIVE = np.uint64((1 << 40) - 1)
_STEP_WORDS = {  # first word → where "request " stands, code
    _word(b"Received"): (9, 1),
    _word(b"Added re"): (6, 2),
    _word(b"Finished"): (9, 3),
}
_STATS_BEGINNINGS = (_word(b"Engine 0"), _word(b"Avg prom"))
_REQUEST = _word(b"request ")
_HTTP = _word(b" HTTP/1.")
_COLOUR_END = _word(b")\x1b[0;0m ")
# The first eight bytes behind the path tell the status; the shortest ending has just as many.
_BY_BEGINNING = {
    _word(f'" {int(status)} {reason}'.encode()): (
        f'" {int(status)} {reason}'.encode(),
        int(status),
    )
    for status, reason in responses.items()
}


class Sorted(NamedTuple):
    """The lines of a chunk, sorted.

    Attributes:
        starts / ends: offsets of the lines in the chunk, without line feeds.
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


class _Chunk(NamedTuple):
    data: npt.NDArray[np.uint8]
    words: Words
    heads: Ints
    tails: Ints
    codes: Ints
    stamps: Floats


def label_of(code: int) -> tuple[str, str]:
    """Return label and detail of a tally for a code."""
    if code < _STATUS_BASE:
        return "request", STEPS[code - 1]
    status, detail = divmod(code - _STATUS_BASE, len(CLASSES))
    return str(status), CLASSES[detail]


def padded(chunk: bytes) -> bytes:
    """Surround a chunk so that words around its lines can be read."""
    return b"".join((b" " * _LEAD, chunk, b"\0" * PAD))


def sort_lines(buffer: bytes, *, requests: bool) -> Sorted:
    """Sort the lines of a padded chunk that ends in a line feed.

    Args:
        buffer: from `padded`.
        requests: count request steps too; else they are left to be read one by one.
    """
    data = np.frombuffer(buffer, np.uint8)
    words: Words = np.ndarray((len(buffer) - 8,), "<u8", buffer, 0, (1,))
    ends: Ints = np.flatnonzero(data[:-PAD] == 10)
    starts = np.empty_like(ends)
    starts[0] = _LEAD
    starts[1:] = ends[:-1] + 1
    # A carriage return before the line feed belongs to neither.
    tails = ends - (data[ends - 1] == 13)
    heads = _heads(data, words, starts)
    codes = np.zeros(len(ends), np.int64)
    stamps = np.full(len(ends), np.nan)
    first = words[heads]
    access = np.flatnonzero(first == _INFO_ACCESS)
    if len(access):
        codes[access] = _access_codes(data, words, heads[access], tails[access])
    stamped = np.flatnonzero((first & _FIVE) == _INFO_STAMP)
    if len(stamped):
        _message_codes(_Chunk(data, words, heads, tails, codes, stamps), stamped, requests)
    return Sorted(starts, ends, heads, codes, stamps)


def _heads(data: npt.NDArray[np.uint8], words: Words, starts: Ints) -> Ints:
    """Return where the record begins behind one process prefix, coloured or not."""
    heads = starts
    begins = data[starts]
    prefixed = np.flatnonzero((begins == 40) | (begins == 27))
    if len(prefixed):
        heads = starts.copy()
        at = starts[prefixed]
        window = data[np.minimum(at[:, None] + np.arange(48), len(data) - 1)] == 41
        close = window.argmax(axis=1)
        found = window[np.arange(len(at)), close]
        behind = at + close
        coloured = words[np.minimum(behind, len(words) - 1)] == _COLOUR_END
        heads[prefixed] = np.where(found, behind + np.where(coloured, 8, 2), at)
        np.minimum(heads, len(words) - 1, out=heads)
    return heads


def _access_codes(data: npt.NDArray[np.uint8], words: Words, heads: Ints, tails: Ints) -> Ints:
    codes = np.zeros(len(heads), np.int64)
    quotes = np.flatnonzero(data == 34)
    if not len(quotes):
        return codes
    at = np.searchsorted(quotes, heads)
    last = len(quotes) - 1
    opening = quotes[np.minimum(at, last)]
    closing = quotes[np.minimum(at + 1, last)]
    beyond = quotes[np.minimum(at + 2, last)]
    inside = (closing < tails) & (opening < closing) & ((beyond >= tails) | (at + 2 > last))
    # Between the quotes: METHOD PATH HTTP/1.x; before them: "client - ".
    inside &= words[np.maximum(closing - 9, 0)] == _HTTP
    dash = words[np.maximum(opening - 3, 0)] & np.uint64(0xFFFFFF)
    inside &= dash == _word(b" - ")
    statuses = _statuses(words, np.minimum(closing, len(words) - 64), tails)
    classes = _classes(words, opening + 1)
    good = inside & (statuses > 0) & (classes >= 0)
    codes[good] = _STATUS_BASE + statuses[good] * len(CLASSES) + classes[good]
    return codes


def _statuses(words: Words, closing: Ints, tails: Ints) -> Ints:
    """Return the status of lines whose end is `" NNN Reason` with the reason HTTP gives it."""
    found = np.zeros(len(closing), np.int64)
    lengths = tails - closing
    keys = words[closing]
    for key in np.unique(keys):
        tail, status = _BY_BEGINNING.get(int(key), (b"", 0))
        if not status:
            continue
        same = (keys == key) & (lengths == len(tail))
        for at in range(8, len(tail), 8):
            piece = tail[at : at + 8]
            mask = np.uint64((1 << 8 * len(piece)) - 1)
            same &= (words[closing + at] & mask) == np.uint64(_word(piece))
        found[same] = status
    return found


def _classes(words: Words, paths: Ints) -> Ints:
    """Return the class of each path, or -1 where sixteen bytes do not tell it."""
    classes = np.full(len(paths), -1, np.int64)
    places = np.minimum(paths, len(words) - 9)
    first, second = words[places], words[places + 8]
    mixed = first ^ (second * np.uint64(0x9E3779B97F4A7C15))
    _, index, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    if len(index) > 256:
        return classes
    for number, at in enumerate(index):
        shown = int(first[at]).to_bytes(8, "little") + int(second[at]).to_bytes(8, "little")
        told = _class_of(shown)
        if told is not None:
            same = (inverse == number) & (first == first[at]) & (second == second[at])
            classes[same] = CLASSES.index(told)
    return classes


def _class_of(shown: bytes) -> str | None:
    """Tell the class of a path from the beginning of ``METHOD PATH ``, if that is enough."""
    method, blank, path = shown.partition(b" ")
    if not blank or not method.isupper() or not path.startswith(b"/"):
        return None
    bare, ended, _ = path.partition(b" ")
    text = bare.decode("ascii", "replace")
    if text.startswith(("/v1/", "/metrics")):
        return path_class(text)
    return path_class(text) if ended else None


def _message_codes(chunk: _Chunk, stamped: Ints, requests: bool) -> None:
    """Sort lines with a vLLM head by the first words of their message."""
    brackets = np.flatnonzero(chunk.data == 93)
    if not len(brackets):
        return
    places = chunk.heads[stamped]
    tails = chunk.tails[stamped]
    at = np.minimum(np.searchsorted(brackets, places), len(brackets) - 1)
    messages = np.minimum(brackets[at] + 2, len(chunk.words) - 16)
    near = (messages > places + 20) & (messages < places + 80) & (messages < tails)
    verbs = chunk.words[messages]
    for beginning in _STATS_BEGINNINGS:
        chunk.codes[stamped[near & (verbs == beginning)]] = STATS
    if not requests:
        return
    for verb, (shift, code) in _STEP_WORDS.items():
        taken = near & (verbs == verb) & (chunk.words[messages + shift] == _REQUEST)
        if code > 1:
            taken &= chunk.data[tails - 1] == 46
        chosen = np.flatnonzero(taken)
        if len(chosen):
            when = stamps_at(chunk.data, places[chosen] + 5)
            valid = ~np.isnan(when)
            lines = stamped[chosen[valid]]
            chunk.codes[lines] = code
            chunk.stamps[lines] = when[valid]


def stamps_at(data: npt.NDArray[np.uint8], places: Ints) -> Floats:
    """Read ``MM-DD HH:MM:SS`` at each place as `header.yearless` does; NaN where none stands."""
    window = data[np.minimum(places, len(data) - 14)[:, None] + np.arange(14)].astype(np.int64)
    digits = window[:, _DIGITS] - 48
    valid = ((digits >= 0) & (digits <= 9)).all(axis=1)
    valid &= (window[:, _MARKS] == _MARK_CODES).all(axis=1)
    month, day, hour, minute, second = (digits[:, 0::2] * 10 + digits[:, 1::2]).T
    valid &= (month >= 1) & (month <= 12) & (hour <= 23) & (minute <= 59) & (second <= 60)
    month = np.clip(month, 1, 12)
    valid &= (day >= 1) & (day <= _MONTH_DAYS[month - 1])
    days = _YEAR_START + _DAYS_BEFORE[month - 1] + day - 1
    return np.where(valid, days * 86400.0 + hour * 3600 + minute * 60 + second, np.nan)
