"""The log of a vLLM server, in whatever release and wrapper, as an input format."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO, cast

import polars as pl

from forensics.errors import InputError
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.read_ahead import Peeked, ReadAhead
from parsers.vllm_log.assemble import REQUEST_ROWS_BYTES, assemble
from parsers.vllm_log.chunks import ChunkReader, Readable
from parsers.vllm_log.division import stream_tasks
from parsers.vllm_log.file_division import Task, file_tasks
from parsers.vllm_log.parallel import read_tasks
from parsers.vllm_log.scanner import Scanner
from parsers.vllm_log.stretches import Stretch, stretch
from parsers.vllm_log.whole_text import WHOLE_BYTES, broken, joined, newest_first, split
from parsers.vllm_log.workers import WORTH_BYTES, Begun, workers_for

PART_BYTES = 8 << 20
ALONE_BYTES = 64 << 20  # of a stream of unknown length, before workers are started


def is_text(head: bytes) -> bool:
    """Tell text from binary content by its control characters."""
    head = head.replace(b"\0", b"")
    controls = sum(head.count(bytes([code])) for code in range(1, 9))
    return bool(head) and controls * 50 < len(head)


def first_stamp(head: bytes) -> float | None:
    """Return the first stamp in a head: the wrapper's if there is one, else the server's."""
    scanner = Scanner()
    for offset, line in split(head):
        scanner.line(line, offset, len(line))
        part = scanner.part
        outer = next((row.place.outer for row in part.records if row.place.outer), None)
        if outer is not None:
            return outer
        if part.first:
            return min(stamp for _, stamp in part.first.values())
    return None


class VllmLog:
    """Reads server logs: any text in which a line of vLLM or of its HTTP server stands.

    Args:
        begun: a log that worker processes read already.
    """

    name = "vllm-log"

    def __init__(self, begun: Begun | None = None) -> None:
        self._begun = begun

    def recognises(self, source: Source) -> bool:
        """Look for lines that some pattern takes, or for vLLM's own stamp."""
        if not is_text(source.head):
            return False
        scanner = Scanner()
        for offset, line in split(source.head):
            scanner.line(line, offset, len(line))
            part = scanner.part
            if part.matched or any(clock == "yearless" for clock, _ in part.first.values()):
                return True
        return False

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all lines of the source."""
        parsed = _whole(source)
        if parsed is None:
            stretches, size = _read(source, progress, self._begun)
            parsed = assemble(stretches, source.index, size, self.name)
        if options.strict and parsed.damages:
            first = parsed.damages[0]
            message = f"{source.path}: {first.reason} at byte {first.offset}"
            raise InputError(message, source.path)
        return parsed


def _whole(source: Source) -> Parsed | None:
    """Read a source as a whole if its lines must be turned round or put together first."""
    how = broken(source.head)
    backwards = newest_first(source.head)
    if how is None and not backwards:
        return None
    with source.open() as stream:
        data = stream.read(WHOLE_BYTES + 1)
    if len(data) > WHOLE_BYTES:
        return None
    text = split(data)
    lines = list(text if how is None else joined(text, how))
    # Empty lines that `joined` leaves out belong to the line before them.
    borders = [0, *(offset for offset, _ in lines[1:]), len(data)]
    found = [
        (*line, end - begin) for line, (begin, end) in zip(lines, pairwise(borders), strict=True)
    ]
    if found and not found[-1][1]:
        found.pop()
    if backwards:
        found.reverse()
    scanner = Scanner()
    # Rows are put in the order of their offsets, so places are counted from the end meanwhile.
    for offset, line, size in found:
        scanner.line(line, len(data) - offset if backwards else offset, size)
    parsed = assemble([stretch(scanner.part)], source.index, len(data), VllmLog.name)
    if not backwards:
        return parsed
    here = (len(data) - pl.col("offset")).cast(pl.UInt64)
    return replace(
        parsed,
        events=parsed.events.with_columns(offset=here),
        facts=parsed.facts.with_columns(offset=here),
        damages=tuple(replace(one, offset=len(data) - one.offset) for one in parsed.damages),
    )


def _read(source: Source, progress: Progress, begun: Begun | None) -> tuple[list[Stretch], int]:
    size = source.size or 0
    workers = 0 if source.local_path is None else workers_for(size)
    if source.local_path is None or not workers:
        return _streamed(source, progress)

    def report(done: int) -> None:
        progress(source.path, done, size)

    if begun is not None and not begun.reads(source.local_path, size):
        begun = None
    tasks = begun.tasks if begun is not None else file_tasks(source.local_path, size)
    done = read_tasks(tasks, report, count_requests=True, workers=workers, begun=begun)
    return done, size


def _streamed(source: Source, progress: Progress) -> tuple[list[Stretch], int]:
    """Read a source from its start to its end, alone at first, with workers when it is long."""
    total = source.size or 0
    done: list[Stretch] = []
    begun = 0
    with ExitStack() as open_now:
        stream: Readable = cast(Readable, open_now.enter_context(source.open()))
        if source.local_path is None:
            # Unpacking takes time of its own; plain files are there at once.
            stream = open_now.enter_context(closing(ReadAhead(cast(BinaryIO, stream))))
        if not total:
            stream = Peeked(stream, REQUEST_ROWS_BYTES + 1)
            total = stream.held
        reader = ChunkReader(count_requests=total > REQUEST_ROWS_BYTES)
        while reader.fill(stream):
            progress(source.path, reader.size, source.size or 0)
            if reader.size - begun > PART_BYTES:
                # Rows of a part are small once they lie in frames. Requests are counted from the
                # beginning of a part on, so that no interval is settled with half of them.
                begun = reader.size
                done.append(stretch(reader.next_part()))
                reader.count_requests |= reader.size > REQUEST_ROWS_BYTES
            if reader.size > ALONE_BYTES and reader.between_lines:
                rest, size = _shared(source, stream, reader, progress)
                return done + rest, size
    return [*done, stretch(reader.part)], reader.size


def _shared(
    source: Source, stream: Readable, reader: ChunkReader, progress: Progress
) -> tuple[list[Stretch], int]:
    """Read the rest of a stream in stretches, on all cores."""
    size = reader.size

    def tasks() -> Iterator[Task]:
        nonlocal size
        offset, held = reader.rest()
        for task in stream_tasks(stream, offset, held):
            size = task.end
            yield task

    def report(done: int) -> None:
        progress(source.path, reader.size + done, source.size or 0)

    done = read_tasks(tasks(), report, count_requests=True, workers=workers_for(WORTH_BYTES))
    return [stretch(reader.part), *done], max(size, reader.size)
