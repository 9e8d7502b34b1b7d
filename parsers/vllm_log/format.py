"""The log of a vLLM server, in whatever release and wrapper, as an input format."""

from typing import cast

from forensics.errors import InputError
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.vllm_log.assemble import REQUEST_ROWS_BYTES, assemble
from parsers.vllm_log.chunks import ChunkReader, Readable
from parsers.vllm_log.frames import Stretch, stretch
from parsers.vllm_log.parallel import read_file, workers_for
from parsers.vllm_log.scanner import Scanner


def is_text(head: bytes) -> bool:
    """Tell text from binary content by its control characters."""
    head = head.replace(b"\0", b"")
    controls = sum(head.count(bytes([code])) for code in range(1, 9))
    return bool(head) and controls * 50 < len(head)


def first_stamp(head: bytes) -> float | None:
    """Return the first stamp in a head: the wrapper's if there is one, else the server's."""
    scanner = Scanner()
    offset = 0
    for line in head.split(b"\n"):
        scanner.line(line, offset)
        offset += len(line) + 1
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
        offset = 0
        for line in source.head.split(b"\n"):
            scanner.line(line, offset)
            offset += len(line) + 1
            part = scanner.part
            if part.matched or any(clock == "yearless" for clock, _ in part.first.values()):
                return True
        return False

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all lines of the source."""
        stretches, size = _read(source, progress)
        damages = [place for one in stretches for place in one.damages]
        if options.strict and damages:
            at, reason = damages[0]
            raise InputError(f"{source.path}: {reason} at byte {at}", source.path)
        return assemble(stretches, source.index, size, self.name)


def _read(source: Source, progress: Progress) -> tuple[list[Stretch], int]:
    size = source.size or 0
    workers = 0 if source.local_path is None else workers_for(size)
    if source.local_path is None or not workers:
        return _streamed(source, progress)
    count_requests = size > REQUEST_ROWS_BYTES
    done = read_file(source.local_path, size, count_requests=count_requests, workers=workers)
    return done, size


def _streamed(source: Source, progress: Progress) -> tuple[list[Stretch], int]:
    """Read a source from its start to its end."""
    total = source.size or 0
    reader = ChunkReader(count_requests=total > REQUEST_ROWS_BYTES)
    with source.open() as stream:
        while reader.fill(cast(Readable, stream)):
            progress(source.path, reader.size, total)
            reader.count_requests |= reader.size > REQUEST_ROWS_BYTES
    return [stretch(reader.part)], reader.size


FORMATS = (VllmLog(),)
