"""Sorts the bulk of a busy server's lines by looking at fixed places, many lines at once.

Nine lines in ten are access lines or request steps that are only counted. What such a line says
stands at one of its ends and repeats itself, so windows of bytes there are compared with literals.
A line is counted here only if everything that the patterns ask of it holds; all others are read one
by one.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from parsers.envelopes.stamps import yearless
from parsers.vllm_log.access import path_class
from parsers.vllm_log.header import read_processes
from parsers.vllm_log.literals import Literal, sorted_by_literals
from parsers.vllm_log.windows import (
    Bools,
    Bytes,
    Ints,
    Words,
    columns_of,
    first_true,
    window,
)
from parsers.vllm_log.wrapped import Owner, Wrappers

Floats = npt.NDArray[np.float64]

PAD = 256  # bytes around a chunk, so that windows can be read at any place of it

STEPS = ("received", "added", "finished")
STATS = -1
RECEIVED, ADDED, FINISHED = 1, 2, 3
CLASSES = ("api", "metrics", "health", "other")
_STATUS_BASE = 16

_LOWEST = np.array([max((bits & -bits).bit_length() - 1, 0) for bits in range(256)])
_OTHER = -2  # the meaning of text that makes a line one to be read by itself
_STEP_CODES = {b"Received": RECEIVED, b"Added": ADDED, b"Finished": FINISHED}
_PREFIXED = re.compile(rb"([(\x1b\\][^\n]{1,94}?)INFO[: ]")
_PREFIX_WIDTH = 96
_MESSAGE = re.compile(
    rb"\[?\w{1,26}\.py:\d{1,5}\] (?:(Received|Added|Finished) request |(Engine \d|Avg prom))?"
)
_ACCESS = re.compile(
    rb'INFO:     [!#-~]+( - "[A-Z]+ (/[!#-~]*) HTTP/[\d.]*\d" (\d{3})(?: [A-Za-z \'-]*)?)'
)
LOCATION = 20  # where the location begins in ``INFO MM-DD HH:MM:SS [file.py:1]``
_CLIENT = 10  # where the client begins in an access line
_HEAD_WIDTH = 72
_ENDING_WIDTH = 64
_QUOTED_ENDING_WIDTH = 72  # two backslashes more


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text.ljust(8, b"\0"), "little"))


_INFO_ACCESS = _word(b"INFO:   ")
_TWO_BLANKS = _word(b"  ")
_INFO_STAMP = _word(b"INFO ")
_TWO = _word(b"\xff" * 2)
_FOUR = _word(b"\xff" * 4)
_FIVE = _word(b"\xff" * 5)


class Sorted(NamedTuple):
    """The lines of a chunk, sorted.

    Attributes:
        starts / ends: places of the lines in the buffer, without line feeds.
        bodies: where what is in the wrapper begins.
        tails: where it ends, without a carriage return.
        heads: where the record begins, behind process prefixes.
        codes: per line 0 for one to be read by itself, STATS for one that looks like a plain stats
            line, else what is counted; see `label_of`.
        stamps: per line the yearless stamp of a request step or stats line; NaN elsewhere.
        outers / owners: what the wrapper says, as in `Wrapped`; None where no line is wrapped.
    """

    starts: Ints
    ends: Ints
    bodies: Ints
    tails: Ints
    heads: Ints
    codes: Ints
    stamps: Floats
    outers: Floats | None
    owners: Ints | None


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
    """A buffer and the places of its lines."""

    def __init__(
        self, buffer: bytearray, end: int, wrappers: Wrappers, cut: Collection[Owner]
    ) -> None:
        self.buffer = buffer
        self.data: Bytes = np.frombuffer(buffer, np.uint8)
        self.ends: Ints = _places_of(10, self.data[PAD:end]) + PAD
        self.starts = np.empty_like(self.ends)
        self.starts[:1] = PAD
        self.starts[1:] = self.ends[:-1] + 1
        # A carriage return before the line feed belongs to neither.
        self.tails = self.ends - (self.data[self.ends - 1] == 13)
        self.bodies = self.starts
        begins = self.data[self.starts]
        self.wrapped = wrappers.take(buffer, begins, self.starts, self.tails, cut)
        if self.wrapped is not None:
            self.bodies, self.tails = self.wrapped.bodies, self.wrapped.tails
            begins = self.data[self.bodies]
        self.heads = self._heads(begins)

    def split(self, lines: Ints) -> Iterator[tuple[Ints, bool]]:
        """Yield lines whose records are plain text, then those whose are JSON strings (True)."""
        if self.wrapped is None:
            groups = [(lines, False)]
        else:
            quoted = self.wrapped.quoted[lines]
            groups = [(lines[~quoted], False), (lines[quoted], True)]
        yield from (group for group in groups if len(group[0]))

    def _heads(self, begins: Bytes) -> Ints:
        prefixed = np.flatnonzero((begins == 40) | (begins == 27) | (begins == 92))
        if not len(prefixed):
            return self.bodies
        heads = self.bodies.copy()
        for lines, quoted in self.split(prefixed):
            heads[lines] += self._prefixes(self.bodies[lines], quoted=quoted)
        return heads

    def _prefixes(self, at: Ints, *, quoted: bool) -> Ints:
        """Return how long the process prefixes at places are."""

        def prefix(number: int) -> Literal | None:
            begin = at[number]
            found = _PREFIXED.match(self.buffer, begin, begin + _PREFIX_WIDTH + 8)
            text = None if found is None else unquoted(found[1]) if quoted else found[1]
            if found is None or text is None or read_processes(text) is None:
                return None
            return Literal(found[1], 0, 0)

        columns = columns_of(window(self.buffer, at, _PREFIX_WIDTH))
        _, lengths = sorted_by_literals(columns, np.ones(len(at), np.bool_), prefix)
        return lengths


def unquoted(text: bytes) -> bytes | None:
    """Return printable ASCII and ESC that stand in a JSON string; None where more does."""
    if text.count(b'"') != text.count(b'\\"'):
        return None
    bare = text.replace(b'\\"', b'"').replace(b"\\u001b", b"\x1b")
    return bare if b"\\" not in bare and text.isascii() and text.decode().isprintable() else None


def _is_one_line(text: bytearray) -> bool:
    """Tell whether what stands in a JSON string is valid there and has no line feed in it."""
    try:
        value: str = orjson.loads(b'"' + text + b'"')
    except orjson.JSONDecodeError:
        return False
    return "\n" not in value


def _places_of(code: int, data: Bytes) -> Ints:
    """Return where a rare byte occurs: a bit for each byte, then words and bytes that have one."""
    found = np.zeros(-(-len(data) // 64) * 8, np.uint8)
    bits = np.packbits(data == code, bitorder="little")
    found[: len(bits)] = bits
    words = found.view("<u8")
    holding = np.flatnonzero(words != 0)
    bits = words[holding].view(np.uint8)
    inside = np.flatnonzero(bits != 0)
    bits = bits[inside]
    places: Ints = (holding[inside >> 3] << 6) + ((inside & 7) << 3)
    if (bits & (bits - np.uint8(1))).any():
        # Some are less than eight bytes apart.
        many = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        places = places[many >> 3] + (many & 7)
        return places
    places += _LOWEST[bits]
    return places


def sort_lines(
    buffer: bytearray, end: int, wrappers: Wrappers, cut: Collection[Owner] = ()
) -> Sorted:
    """Sort the lines between PAD and `end` of a buffer; there is a line feed before `end`.

    Args:
        buffer: has PAD bytes before and behind the lines.
        end: the place behind the last line feed.
        wrappers: those of the log.
        cut: whose last line before these a runtime cut.
    """
    chunk = _Chunk(buffer, end, wrappers, cut)
    codes = np.zeros(len(chunk.ends), np.int64)
    stamps = np.full(len(chunk.ends), np.nan)
    behind_level = chunk.data[chunk.heads + 4]
    access = np.flatnonzero(behind_level == 58)
    for chosen, quoted in chunk.split(access):
        codes[chosen] = _access_codes(chunk, chosen, quoted=quoted)
    stamped = np.flatnonzero(behind_level == 32)
    for chosen, quoted in chunk.split(stamped):
        codes[chosen], stamps[chosen] = _messages(chunk, chosen, quoted=quoted)
    wrapped = chunk.wrapped
    outers = owners = None
    if wrapped is not None:
        codes[wrapped.single] = 0
        stamps[wrapped.single] = np.nan
        outers, owners = wrapped.outers, wrapped.owners
    places = (chunk.starts, chunk.ends, chunk.bodies, chunk.tails, chunk.heads)
    return Sorted(*places, codes, stamps, outers, owners)


def _access_codes(chunk: _Chunk, access: Ints, *, quoted: bool) -> Ints:
    heads, tails = chunk.heads[access], chunk.tails[access]
    begins = window(chunk.buffer, heads, 48)
    head = begins.view("<u8")
    good = (head[:, 0] == _INFO_ACCESS) & (head[:, 1] & _TWO == _TWO_BLANKS)
    # The client is printable, without quotes or blanks; what follows is the same on many lines.
    clients = first_true(_ends_of_words(begins[:, _CLIENT : _CLIENT + 32], 34, quoted=quoted))
    sizes = tails - heads - _CLIENT - clients
    width = _QUOTED_ENDING_WIDTH if quoted else _ENDING_WIDTH
    good &= (clients > 0) & (sizes <= width)

    def access_line(number: int) -> re.Match[bytes] | None:
        if not quoted:
            return _ACCESS.fullmatch(chunk.buffer, heads[number], tails[number])
        text = unquoted(bytes(chunk.buffer[heads[number] : tails[number]]))
        return None if text is None else _ACCESS.fullmatch(text)

    def ending(number: int) -> Literal | None:
        found = access_line(number)
        if found is None:
            return None
        text = found[1].replace(b'"', b'\\"') if quoted else found[1]
        if len(text) > width:
            return None
        return Literal(text, width - len(text), _access_code(found))

    columns = columns_of(window(chunk.buffer, tails - width, width))
    codes, lengths = sorted_by_literals(columns, good, ending)
    codes *= lengths == sizes
    for at in np.flatnonzero(codes == 0).tolist():
        found = access_line(at)
        if found is not None:
            codes[at] = _access_code(found)
    return codes


def _ends_of_words(text: Bytes, last: int, *, quoted: bool) -> Bools:
    """Tell which bytes are no part of a word: those up to `last`, and escapes in JSON strings."""
    ends: Bools = text <= last
    if quoted:
        ends |= (text == 34) | (text == 92)
    return ends


def _access_code(found: re.Match[bytes]) -> int:
    detail = path_class(found[2].decode("ascii"))
    return _STATUS_BASE + int(found[3]) * len(CLASSES) + CLASSES.index(detail)


def _messages(chunk: _Chunk, stamped: Ints, *, quoted: bool) -> tuple[Ints, Floats]:
    """Sort lines with a vLLM head by the first words of their message."""
    heads, tails = chunk.heads[stamped], chunk.tails[stamped]
    columns = columns_of(window(chunk.buffer, heads, _HEAD_WIDTH))

    def message(number: int) -> Literal | None:
        begin = int(heads[number]) + LOCATION
        found = _MESSAGE.match(chunk.buffer, begin, begin + _HEAD_WIDTH - LOCATION)
        if found is None:
            return None
        if found[1]:
            return Literal(found[0], LOCATION, _STEP_CODES[found[1]])
        if found[2]:
            return Literal(found[0], LOCATION, STATS)
        # Of a message that is none of these, a few more bytes tell it from the others.
        return Literal(bytes(chunk.buffer[begin : found.end() + 3]), LOCATION, _OTHER)

    codes, lengths = sorted_by_literals(columns, columns[0] & _FIVE == _INFO_STAMP, message)
    ids = np.flatnonzero(codes > RECEIVED)
    if len(ids):
        # An id without blanks up to a full stop at the end of the line.
        begins = heads[ids] + LOCATION + lengths[ids]
        words = window(chunk.buffer, begins, 64)
        sizes = first_true(_ends_of_words(words, 32, quoted=quoted))
        good = (sizes > 1) & (begins + sizes == tails[ids]) & (chunk.data[tails[ids] - 1] == 46)
        codes[ids[~good]] = 0
    if quoted:
        for at in np.flatnonzero(codes == RECEIVED).tolist():
            begin = int(heads[at]) + LOCATION
            if not _is_one_line(chunk.buffer[begin : tails[at]]):
                codes[at] = 0
    stamps = stamps_of(columns)
    # Without a stamp it is no plain line.
    np.putmask(codes, (codes == _OTHER) | np.isnan(stamps), 0)
    np.putmask(stamps, codes == 0, np.nan)
    return codes, stamps


def stamps_of(columns: Words) -> Floats:
    """Read the stamps of ``INFO MM-DD HH:MM:SS `` as `header.yearless` does; NaN for none.

    Args:
        columns: words as `columns_of` gives them.
    """
    if not columns.shape[1]:
        return np.empty(0)
    # Lines of one minute follow each other.
    new = np.empty(columns.shape[1], np.bool_)
    new[0] = True
    np.not_equal(columns[1, 1:], columns[1, :-1], out=new[1:])
    new[1:] |= columns[0, 1:] != columns[0, :-1]
    first = np.flatnonzero(new)
    begins = np.ascontiguousarray(columns[:2, first].T)
    minutes = [_minute(text) for text in begins.view("V16").ravel().tolist()]
    base = np.repeat(np.array(minutes), np.diff(first, append=len(new)))
    digits = (columns[2] & _FOUR).view(np.uint8).reshape(-1, 8)[:, :4]
    tens, ones = digits[:, 1] - np.uint8(48), digits[:, 2] - np.uint8(48)
    seconds = tens * np.uint8(10) + ones
    valid = (tens <= 6) & (ones <= 9) & (seconds <= 60)
    valid &= (digits[:, 0] == 58) & (digits[:, 3] == 32)
    return np.where(valid, base + seconds, np.nan)


_MINUTE = re.compile(rb"INFO (\d\d-\d\d \d\d:\d\d)")


def _minute(text: bytes) -> float:
    match = _MINUTE.fullmatch(text)
    stamp = yearless(match[1].decode() + ":00") if match is not None else None
    return float("nan") if stamp is None else stamp
