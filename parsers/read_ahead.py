"""Unpacks in a second thread what the first will read next: both cores work on a packed log.

How long a packed log is shows only when it is unpacked; `Peeked` looks at its beginning for that.
"""

import queue
import threading
from collections import deque
from typing import BinaryIO, Protocol

BLOCK_BYTES = 4 << 20  # large, because each block waits for the other thread once
BLOCKS = 2


class ReadAhead:
    """Reads a stream ahead in blocks; to be closed when done, also before its end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._blocks: queue.Queue[bytes | BaseException] = queue.Queue(BLOCKS)
        self._block = memoryview(b"")
        self._ended = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._fetch, daemon=True)
        self._thread.start()

    def _fetch(self) -> None:
        try:
            while not self._stopped.is_set():
                block = self._stream.read(BLOCK_BYTES)
                self._blocks.put(block)
                if not block:
                    break
        except Exception as error:
            self._blocks.put(error)  # raised again where the bytes are read

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with what was read; 0 at the end."""
        if not self._block and not self._ended:
            block = self._blocks.get()
            if isinstance(block, BaseException):
                self._ended = True
                raise block
            self._ended = not block
            self._block = memoryview(block)
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def close(self) -> None:
        """Stop reading ahead."""
        self._stopped.set()
        while self._thread.is_alive():
            try:
                self._blocks.get(timeout=0.01)
            except queue.Empty:
                self._thread.join(timeout=0.01)


class Readable(Protocol):
    """Anything bytes can be read from."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer; 0 at the end."""


class Peeked:
    """A stream whose beginning is held in memory, to tell whether it is longer than that.

    Attributes:
        held: bytes of the beginning, up to `count`; fewer only if there are no more.
    """

    def __init__(self, stream: Readable, count: int) -> None:
        self._stream = stream
        self._blocks: deque[memoryview] = deque()
        self.held = 0
        while self.held < count:
            block = memoryview(bytearray(min(BLOCK_BYTES, count - self.held)))
            got = stream.readinto(block) or 0
            if not got:
                break
            # A block that is hardly filled would hold far more memory than bytes.
            filled = block[:got]
            self._blocks.append(filled if got * 2 > len(block) else memoryview(bytes(filled)))
            self.held += got

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer with what is held, then with what follows; 0 at the end."""
        if not self._blocks:
            return self._stream.readinto(buffer)
        block = self._blocks.popleft()
        count = min(len(buffer), len(block))
        buffer[:count] = block[:count]
        if count < len(block):
            self._blocks.appendleft(block[count:])
        return count
