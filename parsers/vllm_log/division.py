"""Divides a stream into stretches of whole lines that can be read apart.

No line that a container runtime cut stands at the end of a stretch: its rest is in the next line.
"""

from collections.abc import Iterator

from parsers.vllm_log.chunks import Readable
from parsers.vllm_log.file_division import CUT_LINE, Task
from parsers.vllm_log.scanner import MAX_LINE_BYTES

BLOCK_BYTES = 10 << 20  # several are held at a time


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
            kept = bytes(buffer[: MAX_LINE_BYTES + 1])
            end = offset + _drop_line(stream, buffer, block)
            yield Task(offset, end, None, kept, end - offset - len(kept))
            offset = end
        else:
            wanted *= 2
        if ended:
            return


def _last_line_end(buffer: bytearray) -> int:
    end = buffer.rfind(b"\n") + 1
    while end:
        start = buffer.rfind(b"\n", 0, end - 1) + 1
        if CUT_LINE.match(buffer, start) is None:
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
