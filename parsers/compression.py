"""Opens compressed bytes as plain ones, with a limit against decompression bombs."""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Protocol, cast


class _Inflater(Protocol):
    """What is used of a decompressor of zlib or of its faster twin."""

    @property
    def unconsumed_tail(self) -> bytes:
        """Input that was not needed yet."""

    @property
    def unused_data(self) -> bytes:
        """Input behind the end of the member."""

    @property
    def eof(self) -> bool:
        """Whether the end of the member was reached."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Unpack up to `max_length` bytes."""


try:
    # Unpacks logs three to four times as fast as zlib; there are no builds of it for rare machines.
    from isal import isal_zlib

    _decompressor: Callable[[], _Inflater] = partial(isal_zlib.decompressobj, wbits=31)
    _inflate_error = cast(type[Exception], isal_zlib.IsalError)
except ImportError:
    _decompressor = partial(zlib.decompressobj, wbits=31)
    _inflate_error = zlib.error

GUARD_BYTES = 1 << 30  # below this much output no ratio is suspicious enough to stop
PACKED_BYTES = 64 << 10  # small: what is left of it is copied with every piece that comes out
MAX_RATIO = 500  # server logs pack 10 to 60 times; gzip cannot exceed 1,032

MAGICS: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zstd")
BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error, _inflate_error)


def compression_of(head: bytes) -> str | None:
    """Name the compression by the first bytes; None for plain bytes."""
    for magic, name in MAGICS:
        if head.startswith(magic):
            return name
    return None


def bare_name(name: str) -> str:
    """Drop one compression suffix from a file name."""
    for suffix in SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name.removesuffix(suffix)
    return name


class CutStream(io.RawIOBase):
    """Reads a stream up to a limit and up to the first broken byte, and remembers why it stopped.

    Attributes:
        cut: why the stream ended early, in words for the operator; None when it did not.
    """

    def __init__(self, stream: BinaryIO, packed: BinaryIO | None, limit: int) -> None:
        super().__init__()
        self._stream = stream
        self._packed = packed
        self._left = limit
        self._limit = limit
        self.cut: str | None = None

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer; 0 at the end or where reading was cut."""
        if self.cut is not None:
            return 0
        if self._left <= 0:
            # Only a stream that really has more is cut.
            if self._read(1):
                self.cut = f"unpacks to more than {self._limit} bytes; only that much was read"
            return 0
        data = self._read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        done = self._limit - self._left
        if self._packed is not None and done > GUARD_BYTES:
            packed = max(1, self._packed.tell())
            if done // packed > MAX_RATIO:
                self.cut = (
                    f"unpacks to more than {MAX_RATIO} times its size (a decompression bomb?); "
                    f"read up to byte {done}"
                )
        return len(data)

    def _read(self, count: int) -> bytes:
        try:
            # read1 hands out what there is; read would lose it when damage follows.
            read: Callable[[int], bytes] = getattr(self._stream, "read1", self._stream.read)
            return read(count)
        except BROKEN as broken:
            self.cut = f"compressed data ends or breaks here ({type(broken).__name__})"
            return b""

    def close(self) -> None:
        """Close both streams."""
        if not self.closed:
            self._stream.close()
            if self._packed is not None:
                self._packed.close()
        super().close()


class _Gunzip(io.RawIOBase):
    """Unpacks gzip, any number of members, in large pieces; what precedes damage is not lost."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__()
        self._packed = packed
        self._inflater = _decompressor()
        self._pending = b""
        self._inside = False  # a member

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer with unpacked bytes; 0 at the end."""
        while True:
            data = self._inflater.decompress(self._pending, len(buffer))
            self._pending = self._inflater.unconsumed_tail
            if self._inflater.eof:
                self._pending = self._inflater.unused_data
                self._inflater = _decompressor()
                self._inside = False
            if data:
                buffer[: len(data)] = data
                return len(data)
            if not self._more():
                return 0

    def _more(self) -> bool:
        """Fetch packed bytes when none are left; False at the end."""
        if not self._pending:
            self._pending = self._packed.read(PACKED_BYTES)
            if not self._pending and self._inside:
                raise EOFError
        if not self._inside:
            # Zero bytes pad members on tapes and block devices.
            self._pending = self._pending.lstrip(b"\0")
            self._inside = bool(self._pending)
        return self._inside


def _zstd(packed: BinaryIO) -> BinaryIO:
    import zstandard

    return cast(
        BinaryIO, zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    )


_OPENERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    "gzip": lambda packed: cast(BinaryIO, _Gunzip(packed)),
    "bzip2": lambda packed: cast(BinaryIO, bz2.BZ2File(packed)),
    "xz": lambda packed: cast(BinaryIO, lzma.LZMAFile(packed)),  # noqa: SIM115 - the caller closes
    "zstd": _zstd,
}


def unpacked(packed: BinaryIO, compression: str, limit: int) -> CutStream:
    """Open compressed bytes; what comes out ends at `limit` bytes or at the first damage."""
    return CutStream(_OPENERS[compression](packed), packed, limit)
