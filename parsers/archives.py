"""Members of zip and tar archives, without unpacking them to named files.

Members of plain tar and of zip archives are read in place. A compressed tar can only be read from
its start, so its members are spooled once to an unnamed temporary file.
"""

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO, BinaryIO, NamedTuple, cast

MAX_MEMBERS = 20_000
FEW_MEMBERS = 32
_TAR_MAGIC_AT = 257


class Member(NamedTuple):
    """One file inside an archive; `open` yields its bytes from the start."""

    name: str
    size: int
    mtime: float | None
    open: Callable[[], BinaryIO]


class View(io.RawIOBase):
    """A stretch of a file that several readers share, each with its own position."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._start = self._at = start
        self._end = start + size

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def seekable(self) -> bool:
        """Say that this can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset within the stretch, and return it."""
        base = {io.SEEK_SET: self._start, io.SEEK_CUR: self._at, io.SEEK_END: self._end}[whence]
        self._at = max(self._start, base + offset)
        return self._at - self._start

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer from the shared file."""
        self._file.seek(self._at)
        data = self._file.read(max(0, min(len(buffer), self._end - self._at)))
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)


def is_zip(head: bytes) -> bool:
    """Tell a zip archive by its first bytes."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_tar(head: bytes) -> bool:
    """Tell a tar archive by the magic of its first member."""
    return head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def _plain(name: str) -> bool:
    return not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def zip_members(open_archive: Callable[[], BinaryIO]) -> Iterator[Member]:
    """Yield the files of a zip archive, in the order of its directory."""
    with zipfile.ZipFile(open_archive()) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir() and _plain(info.filename)]
    # Opening an archive reads its whole directory, so one of many files stays open; of few it does
    # not, for there may be many such archives, and open files are limited.
    held = zipfile.ZipFile(open_archive()) if len(infos) > FEW_MEMBERS else None
    for info in infos[:MAX_MEMBERS]:

        def opener(info: zipfile.ZipInfo = info) -> BinaryIO:
            return cast(BinaryIO, (held or zipfile.ZipFile(open_archive())).open(info))

        yield Member(info.filename, info.file_size, None, opener)


def tar_members(open_archive: Callable[[], BinaryIO]) -> Iterator[Member]:
    """Yield the files of an uncompressed tar archive."""
    found: list[tuple[str, int, int, float]] = []
    broken: Exception | None = None
    with open_archive() as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                found.extend(  # one by one, so that a broken archive leaves what precedes the break
                    (info.name, info.offset_data, info.size, float(info.mtime))
                    for info in _files(archive)
                    if not info.issparse()
                )
        except tarfile.TarError as error:
            broken = error
    for name, start, size, mtime in found[:MAX_MEMBERS]:

        def opener(start: int = start, size: int = size) -> BinaryIO:
            return cast(BinaryIO, io.BufferedReader(View(open_archive(), start, size)))

        yield Member(name, size, mtime, opener)
    if broken is not None:
        raise broken


def packed_tar_members(open_stream: Callable[[], BinaryIO], limit: int) -> Iterator[Member]:
    """Yield the files of a compressed tar archive, spooled up to `limit` bytes in all."""
    spool = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - the members' views keep it
    found: list[tuple[str, int, int, float]] = []
    broken: Exception | None = None
    with open_stream() as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for info in _files(archive):
                    content: IO[bytes] | None = archive.extractfile(info)
                    start = spool.tell()
                    if content is None or start >= limit or len(found) >= MAX_MEMBERS:
                        continue
                    try:
                        _copy(content, spool, limit)
                    finally:
                        size = spool.tell() - start
                        found.append((info.name, start, size, float(info.mtime)))
        except tarfile.TarError as error:
            broken = error
    for name, start, size, mtime in found:

        def opener(start: int = start, size: int = size) -> BinaryIO:
            return cast(BinaryIO, io.BufferedReader(View(spool, start, size)))

        yield Member(name, size, mtime, opener)
    if broken is not None:
        raise broken


def _copy(content: IO[bytes], spool: BinaryIO, limit: int) -> None:
    # In small pieces: a read that meets the end of a cut archive gives nothing at all.
    while spool.tell() < limit and (chunk := content.read(min(1 << 16, limit - spool.tell()))):
        spool.write(chunk)


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    return (info for info in archive if info.isfile() and _plain(info.name))
