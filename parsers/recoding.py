"""Text in UTF-16, as PowerShell redirects it, → the same text in UTF-8.

``curl … > metrics.json`` and ``docker logs … > server.log`` in Windows PowerShell write UTF-16 with
a byte order mark (https://learn.microsoft.com/powershell, about_Redirection).
"""

import codecs
import io
from typing import BinaryIO

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the mark of UTF-16: asked first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLOCK_BYTES = 1 << 20


def wide_encoding(head: bytes) -> str | None:
    """Name the encoding of wide characters by its byte order mark; None for other bytes."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


class Recoded(io.RawIOBase):
    """Reads a stream of wide characters as UTF-8; what is no character becomes U+FFFD."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer with UTF-8; 0 at the end."""
        while not self._ready and not self._ended:
            block = self._stream.read(_BLOCK_BYTES)
            self._ended = not block
            self._ready = self._decoder.decode(block, final=self._ended).encode()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        """Close both streams."""
        if not self.closed:
            self._stream.close()
        super().close()
