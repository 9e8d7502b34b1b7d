"""One line at a time: unwrap, split head from message, find the pattern, keep what it says.

The scanner has no state but the last stamp per instance, which unstamped lines (access lines,
tracebacks) inherit. That makes a file divisible at any line: what a part could not know about the
lines before it is filled in when the parts are put together.
"""

import json
import re
from collections.abc import Collection
from itertools import pairwise

import orjson

from parsers.envelopes import Layer, Unwrapped, plain, unwrap
from parsers.vllm_log import registry
from parsers.vllm_log.access import ACCESS, path_class
from parsers.vllm_log.header import Head, read_head
from parsers.vllm_log.interface import Fact, Fields
from parsers.vllm_log.records import (
    MAX_SHAPES,
    Mark,
    Part,
    Place,
    Record,
    Statement,
    Tally,
)

MAX_LINE_BYTES = 4 << 20  # longer than any prompt that fits a 128 K context; cut there

MAX_TEXT = 2000  # characters of a text field

_MATCHED, _UNKNOWN, _IGNORED = 0, 1, 2  # of several records on a line, the lowest holds
_INNER = re.compile(
    r"(?:^|\s|(?<=[:\]}]))(?P<record>(?:\([A-Za-z][\w ]* pid=\d+(?:, ip=[\d.]+)?\) ?)*"
    r"(?:(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL) "
    r"\d\d-\d\d \d\d:\d\d:\d\d \[?[\w./<>-]+\.py:\d+\]|(?:INFO: {5}|WARNING:  |ERROR:    )\S))"
)
_FREE_TEXT = re.compile(r"Received request |Generated response |Request \S+ details: ")
_TRACEBACK = "Traceback (most recent call last)"
_WRITTEN = re.compile(  # by users: what is quoted, and what follows the name of a text
    r"\b(?:prompt|messages|content|inputs?|output|query|documents)(?:_token_ids|_value)?"
    r"[\"'\\]*\s*[:=].*|'[^']*'|\"[^\"]*\"",
    re.DOTALL,
)
_PROSE = re.compile(r"(?:(?:^|(?<=\s))[^\s/=_\[\]]+(?:\s+|$))+")
_MASK = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}(?:-[0-9a-f]+)*\b|\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[A-Za-z]{2,}")
_PROGRESS = re.compile(r"\d+%\||\|\s*\d+/\d+ \[|it/s\]|s/it\]|\d+/\? \[")
_STARTS = {
    "startup_version": "banner",
    "startup_logo": "banner",
    "engine_config": "engine",
    "engine_process_start": "engine",
}


def _json(fields: Fields) -> str:
    for name, value in fields.items():
        if isinstance(value, str) and len(value) > MAX_TEXT:
            fields[name] = value[:MAX_TEXT]
    try:
        return orjson.dumps(fields).decode()
    except TypeError:
        # Integers beyond 64 bits and lone surrogates: nothing vLLM prints.
        return json.dumps(fields, separators=(",", ":"))


class Scanner:
    """Reads lines of one stretch of a source into a `Part`.

    Attributes:
        part: what was read so far.
        stats_lines: how many stats lines were among it; each may end an interval.
        stamped: instance, clock and stamp of the last line read, if it had its own.
    """

    def __init__(self) -> None:
        self.part = Part()
        self.stats_lines = 0
        self.stamped: tuple[str | None, str, float] | None = None
        self._unknown = ""
        self._pending: dict[tuple[str | None, str | None], str] = {}

    @property
    def cut(self) -> Collection[tuple[str | None, str | None]]:
        """Instances and streams whose line a runtime cut, and which wait for its rest."""
        return self._pending.keys()

    def line(self, raw: bytes | bytearray, offset: int, size: int) -> None:
        """Read one physical line.

        Args:
            raw: the line without its line feed.
            offset: where it starts.
            size: its bytes in the source, with the line feed.
        """
        if len(raw) > MAX_LINE_BYTES:
            self.overlong(offset, size)
            return
        part = self.part
        part.lines += 1
        self.stamped = None
        broken = False
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="replace")
            broken = True
        if "\0" in text:
            text = text.replace("\0", "")
        status = self._physical(text, offset)
        if broken and status == _UNKNOWN:
            part.damage(offset, "bytes that are not UTF-8", size)
        else:
            self._count(status, text, size)

    def entry(self, layer: Layer, offset: int) -> None:
        """Read one entry of a document, which was taken out of its wrapper already."""
        self.part.lines += 1
        self.stamped = None
        statuses = [
            self._wrapped(line, offset, layer) for line in layer.body.split("\n") if line.strip()
        ]
        self._count(min(statuses, default=_IGNORED), layer.body, 0)

    def overlong(self, offset: int, size: int) -> None:
        """Count a line that is longer than any that is read."""
        self.stamped = None
        self.part.lines += 1
        self.part.damage(offset, f"line longer than {MAX_LINE_BYTES} bytes", size)

    def stamp(self, instance: str | None, clock: str, stamp: float) -> None:
        """Take notice of a stamp: unstamped lines behind it inherit it."""
        self.stamped = (instance, clock, stamp)
        when = (clock, stamp)
        self.part.first.setdefault(instance, when)
        self.part.last[instance] = when

    def _count(self, status: int, text: str, size: int) -> None:
        part = self.part
        if status == _MATCHED:
            part.matched += 1
            part.matched_bytes += size
        elif status == _IGNORED:
            part.ignored += 1
            part.ignored_bytes += size
        else:
            part.unknown += 1
            part.unknown_bytes += size
            self._shape(self._unknown or text)

    def _physical(self, text: str, offset: int) -> int:
        if "\r" not in text:
            return self._wrapped(text, offset)
        # Progress bars redraw themselves with carriage returns; a record may follow on the line.
        pieces = [piece for piece in text.split("\r") if piece.strip()]
        return min((self._wrapped(piece, offset) for piece in pieces), default=_IGNORED)

    def _wrapped(self, text: str, offset: int, around: Layer | None = None) -> int:
        status = _IGNORED
        first = True
        for record in unwrap(text, self._pending, around):
            if record.partial:
                self._pending[record.cut_from] = self._held(record).body
                continue
            if self._pending:
                record = self._held(record)
            result = self._record(record, offset)
            status = result if first else min(status, result)
            first = False
        return status

    def _held(self, record: Unwrapped) -> Unwrapped:
        """Put what the runtime cut off before in front of a line."""
        held = self._pending.pop(record.cut_from, None)
        if held is None or len(held) > MAX_LINE_BYTES:
            return record
        return record._replace(body=plain(held + record.body))

    def _record(self, wrapped: Unwrapped, offset: int) -> int:
        head = read_head(wrapped.body)
        if head.stamp is None and wrapped.own is not None:
            head = head._replace(clock=wrapped.own[0], stamp=wrapped.own[1])
        message = head.message
        several = (".py:" in message or ":    " in message) and not _FREE_TEXT.match(message)
        begins = [match.start("record") for match in _INNER.finditer(message)] if several else []
        if not begins:
            return self._message(head, wrapped, offset)
        status = self._message(head._replace(message=message[: begins[0]]), wrapped, offset)
        if status == _UNKNOWN and head.level is None:
            status = _IGNORED  # a prefix that no envelope knows
        for begin, end in pairwise((*begins, len(message))):
            head = read_head(message[begin:end])
            if _FREE_TEXT.match(head.message):
                # What looks like a record behind it is quoted in it.
                return min(status, self._message(read_head(message[begin:]), wrapped, offset))
            status = min(status, self._message(head, wrapped, offset))
        return status

    def _message(self, head: Head, wrapped: Unwrapped, offset: int) -> int:
        part = self.part
        if head.stamp is not None:
            self.stamp(wrapped.instance, head.clock, head.stamp)
        message = head.message.rstrip("\r\n")
        if '" ' in message and " HTTP/" in message:
            access = ACCESS.fullmatch(message.strip())
            if access is not None:
                self._tally(wrapped, offset, access["status"], path_class(access["path"]))
                return _MATCHED
        if not message.strip():
            return _IGNORED
        taken = registry.take(message)
        if taken is None:
            taken = registry.take(message.strip()) if message[-1:] == " " else None
        if taken is None:
            return self._other(message, head, wrapped, offset)
        place = self._place(head, wrapped, offset, taken.engine)
        facts = taken.pattern.state(taken.message, taken.fields)
        part.statements.extend(Statement(place, fact) for fact in facts)
        if taken.pattern.ignored:
            return _IGNORED
        part.records.append(Record(place, taken.pattern.kind, _json(taken.fields)))
        if taken.pattern.kind == "stats_periodic":
            self.stats_lines += 1
        self._lifecycle(taken, place, facts)
        if taken.message is not message and registry.exception_line(message) is not None:
            part.marks.append(Mark(place, message))
        return _MATCHED

    def _lifecycle(self, taken: registry.Taken, place: Place, facts: tuple[Fact, ...]) -> None:
        kind, fields = taken.pattern.kind, taken.fields
        what = _STARTS.get(kind)
        if what == "banner" and "version" not in fields:
            return
        if what is not None:
            kept: Fields = {"what": what}
            for key in ("version", "pid"):
                if key in fields:
                    kept[key] = fields[key]
            self.part.records.append(Record(place, "process_start", _json(kept)))
        elif kind == "http_server" and "state" in fields:
            started = fields["state"] == "started"
            kept = {"what": "server"}
            if "pid" in fields:
                kept["pid"] = fields["pid"]
            name = "process_start" if started else "process_stop"
            self.part.records.append(Record(place, name, _json(kept)))
        elif taken.pattern.name == "shutdown_begin":
            self.part.records.append(Record(place, "process_stop", _json({"what": "shutdown"})))

    def _other(self, message: str, head: Head, wrapped: Unwrapped, offset: int) -> int:
        bare = message.strip()
        if bare.startswith(_TRACEBACK):
            self.part.marks.append(Mark(self._place(head, wrapped, offset, None), None))
            return _MATCHED
        error = registry.exception_line(message.rstrip())
        if error is not None:
            self.part.marks.append(Mark(self._place(head, wrapped, offset, None), error))
            return _MATCHED
        if message[:1] in (" ", "\t") or bare.startswith(("File ", "^", "[rank")):
            # Frames of a traceback and continuation lines of records that were taken or ignored.
            return _IGNORED
        if _PROGRESS.search(bare) is not None or _WORD.search(bare) is None:
            return _IGNORED
        # A line without a head may be the rest of a prompt that was cut: its words do not matter.
        headed = head.level is not None or head.stamp is not None
        self._unknown = message if headed else _PROSE.sub("… ", bare[:400])
        return _UNKNOWN

    def _place(self, head: Head, wrapped: Unwrapped, offset: int, engine: str | None) -> Place:
        clock, stamp = self._when(head, wrapped.instance)
        return Place(
            offset,
            clock,
            stamp,
            wrapped.outer,
            wrapped.instance,
            engine or head.process.engine,
            head.process.name,
        )

    def _when(self, head: Head, instance: str | None) -> tuple[str, float | None]:
        if head.stamp is not None:
            return head.clock, head.stamp
        return self.part.last.get(instance, ("none", None))

    def _tally(self, wrapped: Unwrapped, offset: int, label: str, detail: str) -> None:
        clock, stamp = self.part.last.get(wrapped.instance, ("none", None))
        self.part.tallies.append(
            Tally(offset, clock, stamp, wrapped.outer, wrapped.instance, label, detail, 1)
        )

    def _shape(self, text: str) -> None:
        shapes = self.part.shapes
        shape = _MASK.sub("#", _WRITTEN.sub("…", text[:400])).strip()[:160]
        if shape in shapes or len(shapes) < MAX_SHAPES:
            shapes[shape] += 1
