"""Scans an HTTP API answer for its series without building the JSON document in memory.

An answer may be gigabytes long, be one of many in a file, be pretty-printed, or stand below a shell
prompt. Only ``"metric": {…}`` and what follows it matters; inside JSON strings a quote is escaped,
so this text can be nothing but the key. A cut or damaged place costs that place only.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import orjson

BLOCK_BYTES = 4 << 20
"""Bytes read at a time: about what stays in the processor's cache, and enough for bulk work."""

MAX_ARRAY_BYTES = 64 << 20
"""Labels or native histograms of one series that are longer are taken for damage."""

MARK = b'"metric"'
_DECIDES = 64  # bytes behind the points of a series that tell whether histograms follow

_HEAD = re.compile(
    rb'"metric"\s*:\s*(?P<labels>\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\})\s*,\s*'
    rb'"(?P<kind>values?|histograms?)"\s*:\s*\[',
    re.DOTALL,
)
_KEY = re.compile(rb'"metric"\s*:\s*\{')
_ALSO = re.compile(rb'\s*\]\s*,\s*"histograms"\s*:\s*(?=\[)')
_CLOSED = re.compile(rb"\s*\]")
_END = re.compile(rb"\]\s*\]")
_BRACKETS = re.compile(rb'[\[\]{}]|"(?:[^"\\]++|\\.)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Head:
    """The start of a series: its labels, the kind of its points, and where it stands.

    Attributes:
        labels: all labels, `__name__` among them.
        kind: ``values``, ``value``, ``histograms`` or ``histogram``.
        offset: of the key ``"metric"`` in the source.
    """

    labels: dict[str, str]
    kind: str
    offset: int


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of the points of one series.

    Attributes:
        head: the series; the same object for all its pieces.
        text: for ``values`` whole pairs, comma-separated; else one whole JSON array.
        offset: of `text` in the source.
        pairs: opening brackets in `text`, each the start of a pair.
    """

    head: Head
    text: bytes | memoryview
    offset: int
    pairs: int


@dataclass(slots=True)
class Scanner:
    """Cuts a stream into regions.

    Attributes:
        damaged: told of (offset, reason).
        seen: bytes read so far.
    """

    damaged: Callable[[int, str], None]
    seen: int = 0
    _found: list[Region] = field(default_factory=list)

    def regions(self, stream: BinaryIO) -> Iterator[list[Region]]:
        """Yield the regions of each block of the stream, in order."""
        buffer = b""
        base = 0
        head: Head | None = None
        while True:
            block = stream.read(BLOCK_BYTES)
            self.seen += len(block)
            buffer = buffer + block if buffer else block
            head, used = self._scan(buffer, base, head, final=not block)
            if self._found:
                yield self._found
                self._found = []
            if not block:
                return
            buffer = buffer[used:]
            base += used

    def _scan(
        self, buffer: bytes, base: int, head: Head | None, *, final: bool
    ) -> tuple[Head | None, int]:
        """Cut one buffer; return the series it ends in and the bytes used."""
        position = 0
        while True:
            if head is not None and head.kind == "values":
                position, closed = self._pairs(buffer, base, position, head, final=final)
                if not closed or (not final and len(buffer) - position < _DECIDES):
                    return head, position
                also = _ALSO.match(buffer, position)
                head = None if also is None else Head(head.labels, "histograms", head.offset)
                position = position if also is None else also.end()
            if head is not None:
                end, whole = self._array(buffer, base, position, head)
                if not whole and not final and len(buffer) - position < MAX_ARRAY_BYTES:
                    return head, position
                if not whole:
                    self.damaged(base + position, "the points of a series have no end")
                head, position = None, end
            mark = buffer.find(MARK, position)
            if mark < 0:
                return None, max(position, len(buffer) - len(MARK))
            match = _HEAD.match(buffer, mark)
            if match is None:
                if self._unfinished(buffer, mark, final=final):
                    return None, mark
                if _KEY.match(buffer, mark):
                    self.damaged(base + mark, "expected labels and then the points of a series")
                position = mark + len(MARK)
                continue
            position = match.end()
            found = Head(
                self._labels(match["labels"], base + mark), match["kind"].decode(), base + mark
            )
            if found.kind == "values":
                head = found
                continue
            end, whole = self._array(buffer, base, position - 1, found)
            if not whole:
                if self._unfinished(buffer, mark, final=final):
                    return None, mark
                self.damaged(base + position, "the points of a series have no end")
            position = end

    def _pairs(
        self, buffer: bytes, base: int, start: int, head: Head, *, final: bool
    ) -> tuple[int, bool]:
        """Take the pairs that start at `start`; return where they end and whether that is all."""
        end, closed = _pairs_end(buffer, start)
        if end > start:
            text = memoryview(buffer)[start:end]
            self._found.append(Region(head, text, base + start, buffer.count(b"[", start, end)))
        if final and not closed:
            self.damaged(base + end, "the text ends inside the points of a series")
        return end, closed

    def _array(self, buffer: bytes, base: int, start: int, head: Head) -> tuple[int, bool]:
        """Take one JSON array; return where it ends and whether it is whole."""
        depth = 0
        for token in _BRACKETS.finditer(buffer, start, start + MAX_ARRAY_BYTES):
            if token[0] in b"[{":
                depth += 1
            elif token[0] in b"]}":
                depth -= 1
            if depth == 0:
                end = token.end()
                pairs = buffer.count(b"[", start, end)
                self._found.append(Region(head, buffer[start:end], base + start, pairs))
                return end, True
        return start, False

    def _unfinished(self, buffer: bytes, mark: int, *, final: bool) -> bool:
        """Tell whether the series at `mark` may only lack bytes that were not read yet."""
        return (
            not final
            and buffer.find(MARK, mark + len(MARK)) < 0
            and len(buffer) - mark < MAX_ARRAY_BYTES
        )

    def _labels(self, text: bytes, offset: int) -> dict[str, str]:
        """Read a flat object of strings."""
        try:
            labels = orjson.loads(text)
        except orjson.JSONDecodeError:
            self.damaged(offset, "the labels of a series are no JSON object")
            return {}
        return {str(key): str(value) for key, value in labels.items()}


def _pairs_end(buffer: bytes, start: int) -> tuple[int, bool]:
    """Find where the pairs that start at `start` end, and whether the series ends with them."""
    following = buffer.find(MARK, start)
    stop = following if following >= 0 else len(buffer)
    if buffer.endswith(b"]]},{", start, stop):
        return stop - 4, True
    if _CLOSED.match(buffer, start, stop):
        return start, True
    end = buffer.find(b"]]", start, stop)
    if end < 0 and (match := _END.search(buffer, start, stop)) is not None:
        end = match.start()
    if end >= 0:
        return end + 1, True
    # Cut off: give what there is. With another series behind it, this one will not go on.
    return max(start, buffer.rfind(b"]", start, stop) + 1), following >= 0
