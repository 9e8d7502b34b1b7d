"""Divides a log into stretches of whole lines that can be read apart.

No line that a container runtime cut stands at the end of a stretch: its rest is in the next line.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from parsers.vllm_log.chunks import Readable
from parsers.vllm_log.parallel import Task
from parsers.vllm_log.scanner import MAX_LINE_BYTES

SEGMENT_BYTES = 16 << 20  # small, so that no process waits long for the other at the end
BLOCK_BYTES = 10 << 20  # of a stream: several are held at a time
SEARCH_BYTES = 8 << 20  # how far behind a cut a line end is looked for

_CUT_LINE = re.compile(rb'\S+ std(?:out|err) P |\{"log":"(?:[^"\\]|\\.)*(?<!\\n)","stream"')


def file_tasks(path: str, size: int, wanted: int = SEGMENT_BYTES) -> list[Task]:
    """Divide a plain file."""
    cuts = [0]
    with Path(path).open("rb") as file:
        while size - cuts[-1] > wanted * 3 // 2:
            cut = _line_end(file, cuts[-1] + wanted)
            if cut is None or cut >= size:
                break
            cuts.append(cut)
    return [Task(start, end, path) for start, end in zip(cuts, [*cuts[1:], size], strict=True)]


def _line_end(file: BinaryIO, near: int) -> int | None:
    file.seek(near)
    data = file.read(1 << 16)
    while data and data.count(b"\n") < 2 and len(data) < SEARCH_BYTES:
        more = file.read(1 << 20)
        if not more:
            break
        data += more
    first = data.find(b"\n")
    while first >= 0:
        second = data.find(b"\n", first + 1)
        if second < 0:
            return None
        if _CUT_LINE.match(data, first + 1) is None:
            return near + second + 1
        first = second
    return None


def stream_tasks(
    stream: Readable, offset: int, held: bytes, wanted: int | None = None
) -> Iterator[Task]:
    """Divide a stream.

    Args:
        stream: the bytes to come.
        offset: where in the source the held bytes begin.
        held: bytes that were read already.
        wanted: size of a stretch; BLOCK_BYTES unless given.
    """
    wanted = wanted or BLOCK_BYTES
    buffer = bytearray(held)
    block = bytearray(min(wanted, 1 << 20))
    while True:
        while len(buffer) < wanted and (got := stream.readinto(memoryview(block)) or 0):
            buffer += memoryview(block)[:got]
        ended = len(buffer) < wanted
        end = len(buffer) if ended else _last_line_end(buffer)
        if end:
            with memoryview(buffer) as view:
                data = bytes(view[:end])
            yield Task(offset, offset + end, None, data)
            offset += end
            del buffer[:end]
        elif len(buffer) > MAX_LINE_BYTES:
            # Of an overlong line its beginning shows what it is; the rest is dropped.
            yield Task(
                offset, offset + MAX_LINE_BYTES + 1, None, bytes(buffer[: MAX_LINE_BYTES + 1])
            )
            offset += _drop_line(stream, buffer, block)
        else:
            wanted *= 2
        if ended:
            return


def _last_line_end(buffer: bytearray) -> int:
    end = buffer.rfind(b"\n") + 1
    while end:
        start = buffer.rfind(b"\n", 0, end - 1) + 1
        if _CUT_LINE.match(buffer, start) is None:
            return end
        end = start
    return 0


def _drop_line(stream: Readable, buffer: bytearray, block: bytearray) -> int:
    """Drop bytes up to the next line end; return how many."""
    dropped = 0
    while (end := buffer.find(b"\n") + 1) == 0:
        dropped += len(buffer)
        got = stream.readinto(memoryview(block)) or 0
        buffer[:] = memoryview(block)[:got]
        if not got:
            return dropped
    del buffer[:end]
    return dropped + end
