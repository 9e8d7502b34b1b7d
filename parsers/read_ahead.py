"""Unpacks in a second thread what the first will read next: both cores work on a packed log."""

import queue
import threading
from typing import BinaryIO

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
