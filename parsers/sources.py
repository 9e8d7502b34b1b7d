"""Turns what the operator named into streams of plain bytes: files, directories, archives, stdin.

Each path becomes sources in a fixed order. What cannot be read becomes a refusal that says why, and
the rest is read. Files of a rotated set (``server.log``, ``server.log.1``, ``server.log.2.gz``) of
one directory share a stream and are ordered by the first stamp in them, not by name.
"""

import io
import os
import re
import stat
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from forensics.errors import InputError
from parsers.archives import (
    Member,
    View,
    is_tar,
    is_zip,
    packed_tar_members,
    tar_members,
    zip_members,
)
from parsers.compression import BROKEN, CutStream, bare_name, compression_of, unpacked
from parsers.prometheus.tsdb_dump import Tsdb, convert, tsdbs_below
from parsers.recoding import Recoded, wide_encoding

HEAD_BYTES = 64 << 10
MAX_DEPTH = 4  # archives inside archives
STDIN = "-"

_ROTATION = re.compile(
    r"(?P<base>.+?\.(?:log|txt|out|err|json|jsonl))"
    r"(?:[.-](?:\d{1,4}|\d{8}(?:-\d+)?|\d{4}-\d\d-\d\d(?:[T_-][\d:.-]+)?))?"
)
_NOT_EVIDENCE = ("readme", "license", "changelog")


@dataclass(slots=True)
class Found:
    """A stream of plain bytes, before it has a place among the sources.

    Attributes:
        path / name / origin / mtime / head / open / local_path / size: see `Source`, `SourceInfo`.
        stream: the rotated set it is a part of.
        named: the operator named this very file.
        refusal: why it could not be read; None when it can.
        cuts: why reads of it ended early, filled while it is read.
    """

    path: str
    name: str
    origin: str
    stream: str
    open: Callable[[], BinaryIO]
    mtime: float | None = None
    head: bytes = b""
    local_path: str | None = None
    size: int | None = None
    named: bool = False
    refusal: str | None = None
    cuts: list[str] = field(default_factory=list)


def discover(paths: Sequence[str], limit: int) -> Iterator[Found]:
    """Yield the streams behind paths, each path's in a stable order.

    Args:
        paths: files, directories, archives, or ``-`` for standard input.
        limit: bytes to which one compressed source may unpack.
    """
    for path in paths:
        if path == STDIN:
            yield from _plain_bytes(_spooled_stdin(), limit, 0)
            continue
        place = Path(path)
        if _is_folder(path):
            tsdbs = tsdbs_below(place)
            for tsdb in tsdbs:
                yield from _dumped(tsdb, path, limit)
            files, closed = _below(place)
            for file in files:
                if _worth_reading(file, place) and not any(tsdb.owns(file) for tsdb in tsdbs):
                    yield from _file(file, path, limit, named=False)
            for folder, reason in closed:
                yield _unreadable(folder, path, reason)
        else:
            yield from _file(place, path, limit, named=True)


def _is_folder(path: str) -> bool:
    try:
        return bool(path) and Path(path).is_dir()
    except (OSError, ValueError):
        return False  # a name that no file can have: refused where it is opened


def _below(place: Path) -> tuple[list[Path], list[tuple[Path, str]]]:
    """Return what lies below a folder and is none, and the folders not entered, with reasons."""
    files: list[Path] = []
    closed: list[tuple[Path, str]] = []

    def refuse(error: OSError) -> None:
        closed.append((Path(error.filename or place), error.strerror or str(error)))

    for root, folders, names in os.walk(place, onerror=refuse):
        files.extend(Path(root, name) for name in names)
        links = (Path(root, name) for name in folders)
        closed.extend(
            (link, "a link to a folder is not followed; name the folder itself")
            for link in links
            if link.is_symlink()
        )
    return sorted(files), sorted(closed)


def _unreadable(path: Path, origin: str, reason: str) -> Found:
    return Found(str(path), path.name, origin, str(path), io.BytesIO, refusal=reason)


def _dumped(tsdb: Tsdb, origin: str, limit: int) -> Iterator[Found]:
    """Yield the dump of a Prometheus TSDB, which is a directory but one stream."""
    name = tsdb.path.name
    found = Found(str(tsdb.path), name, origin, str(tsdb.path), io.BytesIO, named=True)
    try:
        held = convert(tsdb.path)
    except InputError as error:
        found.refusal = str(error)
        yield found
        return
    size = held.seek(0, io.SEEK_END)
    found.open = lambda: cast(BinaryIO, io.BufferedReader(View(held, 0, size)))
    found.size = size
    yield from _plain_bytes(found, limit, 0)


def _worth_reading(file: Path, root: Path) -> bool:
    inside = file.relative_to(root)
    if any(part.startswith(".") for part in inside.parts):
        return False
    return not file.name.lower().startswith(_NOT_EVIDENCE)


def _spooled_stdin() -> Found:
    spool = tempfile.NamedTemporaryFile(delete=False)  # noqa: SIM115 - reopened by name
    with spool:
        while chunk := sys.stdin.buffer.read(1 << 20):
            spool.write(chunk)
    place = Path(spool.name)
    size = place.stat().st_size
    held = place.open("rb")
    place.unlink()

    def opener() -> BinaryIO:
        from parsers.archives import View

        return cast(BinaryIO, io.BufferedReader(View(held, 0, size)))

    return Found("-", "stdin", STDIN, STDIN, opener, size=size, named=True)


def _file(file: Path, origin: str, limit: int, *, named: bool) -> Iterator[Found]:
    found = Found(
        path=str(file),
        name=file.name,
        origin=origin,
        stream=str(file),
        open=lambda: cast(BinaryIO, file.open("rb")),
        local_path=str(file),
        named=named,
    )
    try:
        # An empty name, say of an unset variable, is not the present folder.
        status = os.stat(origin if named else file)  # noqa: PTH116
    except (OSError, ValueError) as error:
        found.refusal = getattr(error, "strerror", None) or str(error)
        yield found
        return
    if not stat.S_ISREG(status.st_mode):
        found.refusal = "not a regular file"
        yield found
        return
    found.mtime, found.size = status.st_mtime, status.st_size
    yield from _plain_bytes(found, limit, 0)


def _plain_bytes(found: Found, limit: int, depth: int) -> Iterator[Found]:
    """Unpack what is packed and open what is an archive, until plain bytes are left."""
    try:
        with found.open() as stream:
            found.head = _read(stream, HEAD_BYTES)
    except (*BROKEN, zipfile.BadZipFile, RuntimeError) as error:
        found.refusal = f"cannot be read: {_reason(error)}"
        yield found
        return
    compression = compression_of(found.head)
    if depth >= MAX_DEPTH:
        found.refusal = f"archives nested more than {MAX_DEPTH} deep"
        yield found
    elif compression is not None:
        yield from _plain_bytes(_unpacked(found, compression, limit), limit, depth + 1)
    elif is_zip(found.head) or is_tar(found.head):
        yield from _members(found, limit, depth)
    elif (encoding := wide_encoding(found.head)) is not None:
        yield from _plain_bytes(_recoded(found, encoding), limit, depth + 1)
    else:
        found.stream = _stream_of(found)
        yield found


def _unpacked(found: Found, compression: str, limit: int) -> Found:
    packed_open = found.open
    inner = _inside(found, bare_name(found.name))

    def opener() -> BinaryIO:
        stream = unpacked(packed_open(), compression, limit)
        return cast(BinaryIO, _Noting(stream, inner.cuts))

    inner.open = opener
    return inner


def _recoded(found: Found, encoding: str) -> Found:
    wide_open = found.open
    inner = _inside(found, found.name)
    inner.open = lambda: cast(BinaryIO, io.BufferedReader(Recoded(wide_open(), encoding)))
    return inner


def _inside(found: Found, name: str) -> Found:
    """Give what a file holds once it is unpacked or recoded: no longer bytes of a local file."""
    return Found(
        path=found.path,
        name=name,
        origin=found.origin,
        stream=found.stream,
        open=found.open,
        mtime=found.mtime,
        named=found.named,
        cuts=found.cuts,
    )


class _Noting(io.BufferedReader):
    """A buffered reader that leaves a note when its stream was cut."""

    def __init__(self, raw: CutStream, cuts: list[str]) -> None:
        super().__init__(raw, 1 << 20)
        self._cut_stream = raw
        self._cuts = cuts

    def close(self) -> None:
        """Close, and pass on why the stream ended early."""
        cut = self._cut_stream.cut
        if cut is not None and cut not in self._cuts:
            self._cuts.append(cut)
        super().close()


def _members(found: Found, limit: int, depth: int) -> Iterator[Found]:
    members: list[Member] = []
    try:
        if is_zip(found.head):
            members.extend(zip_members(_seekable(found, limit)))
        elif found.local_path is not None:
            members.extend(tar_members(found.open))
        else:
            members.extend(packed_tar_members(found.open, limit))
    except (*BROKEN, tarfile.TarError, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        # What precedes the damage, say of a broken download, is read all the same.
        beyond = f" beyond {len(members)} of its files" if members else ""
        found.refusal = f"archive cannot be read{beyond}: {_reason(error)}"
        yield found
    for member in sorted(members, key=lambda member: member.name):
        yield from _plain_bytes(_member(found, member), limit, depth + 1)


def _member(found: Found, member: Member) -> Found:
    path = f"{found.path}!{member.name}"
    return Found(
        path=path,
        name=member.name.rpartition("/")[2],
        origin=found.origin,
        stream=path,
        open=member.open,
        mtime=member.mtime,
        size=member.size,
    )


def _seekable(found: Found, limit: int) -> Callable[[], BinaryIO]:
    """Return an opener of a seekable copy: zip keeps its directory at the end."""
    if found.local_path is not None:
        return found.open
    spool = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - the members' views keep it
    with found.open() as stream:
        while (chunk := stream.read(1 << 20)) and spool.tell() < limit:
            spool.write(chunk)
    size = spool.tell()
    return lambda: cast(BinaryIO, _SeekableView(spool, size))


class _SeekableView(io.RawIOBase):
    """A reader of a shared spool file with its own position."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file, self._size, self._at = file, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        self._file.seek(self._at)
        data = self._file.read(len(buffer))
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)


def _read(stream: BinaryIO, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0 and (piece := stream.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return f"{type(error).__name__}: {text}"[:200]


def _stream_of(found: Found) -> str:
    """Name the rotated set of a file: its path without rotation number and compression."""
    parent, slash, _ = found.path.rpartition("/")
    bang = found.path.rfind("!")
    if bang > len(parent):
        parent, slash = found.path[:bang], "!"
    match = _ROTATION.fullmatch(bare_name(found.name))
    base = match["base"] if match is not None else bare_name(found.name)
    return f"{parent}{slash}{base}"
