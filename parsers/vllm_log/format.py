"""The log of a vLLM server, in whatever release and wrapper, as an input format."""

import io
from collections.abc import Iterator
from typing import BinaryIO

from forensics.errors import InputError
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.vllm_log.assemble import assemble
from parsers.vllm_log.records import Part
from parsers.vllm_log.scanner import MAX_LINE_BYTES, Scanner

CHUNK_BYTES = 4 << 20


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line without line feed); of an overlong line only a part that shows it."""
    offset = 0
    held: list[bytes] = []
    held_bytes = 0
    while chunk := stream.read(CHUNK_BYTES):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = chunk[start:end]
            if held:
                line = b"".join(held) + line
                yield offset, line[: MAX_LINE_BYTES + 1]
                offset += held_bytes + end - start + 1
                held, held_bytes = [], 0
            else:
                yield offset, line
                offset += end - start + 1
            start = end + 1
        rest = chunk[start:]
        if rest:
            if held_bytes <= MAX_LINE_BYTES:
                held.append(rest)
            held_bytes += len(rest)
    if held:
        yield offset, b"".join(held)[: MAX_LINE_BYTES + 1]


def is_text(head: bytes) -> bool:
    """Tell text from binary content by its control characters."""
    head = head.replace(b"\0", b"")
    controls = sum(head.count(bytes([code])) for code in range(1, 9))
    return bool(head) and controls * 50 < len(head)


def first_stamp(head: bytes) -> float | None:
    """Return the first stamp in a head: the wrapper's if there is one, else the server's."""
    scanner = Scanner()
    for offset, line in lines(io.BytesIO(head)):
        scanner.line(line, offset)
        part = scanner.part
        outer = next((row.place.outer for row in part.records if row.place.outer), None)
        if outer is not None:
            return outer
        if part.first:
            return min(stamp for _, stamp in part.first.values())
    return None


class VllmLog:
    """Reads server logs: any text in which a line of vLLM or of its HTTP server stands."""

    name = "vllm-log"

    def recognises(self, source: Source) -> bool:
        """Look for lines that some pattern takes, or for vLLM's own stamp."""
        if not is_text(source.head):
            return False
        scanner = Scanner()
        for offset, line in lines(io.BytesIO(source.head)):
            scanner.line(line, offset)
            part = scanner.part
            if part.matched or any(clock == "yearless" for clock, _ in part.first.values()):
                return True
        return False

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all lines of the source."""
        scanner = Scanner()
        size = 0
        with source.open() as stream:
            for offset, line in lines(stream):
                scanner.line(line, offset)
                size = offset + len(line) + 1
                if scanner.part.lines % 20000 == 0:
                    progress(source.path, offset, source.size or 0)
        part: Part = scanner.part
        if options.strict and part.damages:
            at, reason = part.damages[0]
            raise InputError(f"{source.path}: {reason} at byte {at}")
        return assemble([part], source.index, size, self.name)


FORMATS = (VllmLog(),)
