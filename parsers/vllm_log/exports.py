"""Logs exported as one document: Grafana's JSON and CSV, answers of Loki and Elasticsearch.

Each entry is a line with a stamp and labels. Exports are often newest first; entries are put in the
order of their stamps. Of a document that breaks off, the entries before the break are read.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import orjson

from forensics.evidence import FileCoverage
from parsers.envelopes import Layer
from parsers.envelopes.containers import named
from parsers.envelopes.json_lines import json_record
from parsers.envelopes.stamps import instant
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.vllm_log.assemble import assemble
from parsers.vllm_log.scanner import Scanner
from parsers.vllm_log.stretches import stretch
from parsers.vllm_log.whole_text import descending

MAX_BYTES = 1 << 30

_ENTRY_KEY = re.compile(rb'"(?:line|log|message|MESSAGE|textPayload|msg)"\s*:')
_STREAMS = re.compile(rb'"resultType"\s*:\s*"streams"|"hits"\s*:\s*\{|"events"\s*:\s*\[\s*\{')
_PRETTY = re.compile(rb"\{\s*\n")  # ``journalctl -o json-pretty``: one object after the other
_BETWEEN = re.compile(r"[\s,]*")
_LINE_COLUMNS = (
    "line",
    "message",
    "log",
    "body",
    "_source.message",
    "content",
    "@message",
    "textpayload",
    "jsonpayload.message",
    "logentry",
    "logmessage",
)
_TIME_COLUMNS = ("tsns", "timestamp", "@timestamp", "time", "date", "ts")


class Entry(NamedTuple):
    """A line of an export and about where in the document it stands."""

    offset: int
    layer: Layer


def _columns(head: bytes) -> list[str] | None:
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace")
    if first.startswith(("{", "[", "(")) or len(first) > 4096:
        return None
    try:
        names = [name.strip().lower() for name in next(csv.reader([first.strip()]), [])]
    except csv.Error:
        return None
    known = any(name in _LINE_COLUMNS for name in names)
    return names if known and any(name in _TIME_COLUMNS for name in names) else None


class LogExport:
    """Reads log exports that are one document, not one record per line."""

    name = "log-export"

    def recognises(self, source: Source) -> bool:
        """Look for the beginning of an array of entries, of an answer, or for column names."""
        head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"["):
            return head[1:].lstrip()[:1] == b"{" and _ENTRY_KEY.search(head) is not None
        if head.startswith(b"{"):
            pretty = _PRETTY.match(head) is not None and _ENTRY_KEY.search(head) is not None
            return pretty or _STREAMS.search(head[:4096]) is not None
        return _columns(head) is not None

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read the document as a whole."""
        with source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            note = f"{source.path}: export larger than {MAX_BYTES} bytes; export it in parts"
            return Parsed(FileCoverage(source.index, self.name, len(data), damaged=1, note=note))
        progress(source.path, len(data), len(data))
        scanner = Scanner()
        entries, broken = _entries(data)
        for entry in _ordered(entries):
            scanner.entry(entry.layer, entry.offset)
        if broken is not None:
            scanner.part.lines += 1
            scanner.part.damage(broken, "a JSON document that breaks off", 0)
        parsed = assemble([stretch(scanner.part)], source.index, len(data), self.name)
        # Entries of a document are no lines of it.
        return replace(parsed, coverage=replace(parsed.coverage, kind_bytes=None))


def _ordered(entries: list[Entry]) -> list[Entry]:
    """Put entries in the order of their stamps, and number them so that rows keep it."""
    stamps = [_stamp(entry.layer) for entry in entries]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) == len(entries) and descending(known):
        entries = entries[::-1]
    elif len(known) == len(entries):
        entries = sorted(entries, key=lambda entry: _stamp(entry.layer) or 0.0)
    return [entry._replace(offset=number) for number, entry in enumerate(entries)]


def _stamp(layer: Layer) -> float | None:
    return layer.outer if layer.outer is not None or layer.own is None else layer.own[1]


def _entries(data: bytes) -> tuple[list[Entry], int | None]:
    """Return the entries of a document, and where it breaks off if it does."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"[", b"{")):
        return list(_csv_entries(data)), None
    broken = None
    try:
        documents: list[object] = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        documents, broken = _values(text.decode(errors="replace"))
    layers = (layer for document in documents for layer in _json_layers(document))
    return [Entry(at, layer) for at, layer in enumerate(layers)], broken


def _values(text: str) -> tuple[list[object], int | None]:
    """Read the values of an array, or those that stand one after the other, up to a break."""
    decoder = json.JSONDecoder(strict=False)
    values: list[object] = []
    array = text.startswith("[")
    at = _end_of_blanks(text, int(array))
    while at < len(text) and not (array and text[at] == "]"):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return values, at
        values.append([value] if array else value)
        at = _end_of_blanks(text, at)
    return values, None if at < len(text) or not array else at


def _end_of_blanks(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return at if between is None else between.end()


def _json_layers(document: object) -> Iterator[Layer]:
    if isinstance(document, list):
        for record in document:
            layer = json_record(record) if isinstance(record, dict) else None
            if layer is not None:
                yield layer
    elif isinstance(document, dict):
        data = document.get("data", document)
        result = data.get("result") if isinstance(data, dict) else None
        if isinstance(result, list):
            for stream in result:
                if isinstance(stream, dict):
                    yield from _stream_layers(stream)
        hits, events = document.get("hits"), document.get("events")
        if isinstance(hits, dict):
            yield from _json_layers(hits.get("hits"))
        elif isinstance(events, list):
            yield from _json_layers(events)
        elif not isinstance(result, list):
            layer = json_record(document)
            if layer is not None:
                yield layer


def _stream_layers(stream: dict[str, object]) -> Iterator[Layer]:
    labels = stream.get("stream")
    texts = {}
    if isinstance(labels, dict):
        texts = {key: value for key, value in labels.items() if isinstance(value, str)}
    values = stream.get("values")
    for value in values if isinstance(values, list) else ():
        if isinstance(value, list) and len(value) >= 2 and isinstance(value[1], str):
            when = instant(value[0])
            yield Layer(value[1].rstrip("\r\n"), when[1] if when else None, named(texts))


def _csv_entries(data: bytes) -> Iterator[Entry]:
    names = _columns(data[:65536]) or []
    text = io.StringIO(data.decode("utf-8-sig", errors="replace"), newline="")
    line_at = next(names.index(name) for name in _LINE_COLUMNS if name in names)
    time_at = next(names.index(name) for name in _TIME_COLUMNS if name in names)
    rows = csv.reader(text)
    csv.field_size_limit(1 << 26)
    for number, row in enumerate(rows):
        if number and len(row) > max(line_at, time_at):
            when = instant(row[time_at])
            labels = dict(zip(names, row, strict=False))
            outer = when[1] if when is not None and when[0] == "utc" else None
            own = when if when is not None and when[0] != "utc" else None
            body = row[line_at].rstrip("\r\n")
            yield Entry(number, Layer(body, outer, named(labels), own))
