"""Takes a stream of bytes apart to plain bytes: compression, archives, wide encodings.

What cannot be read becomes a refusal that says why, and the rest is read.
"""

import io
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

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
from parsers.recoding import Recoded, wide_encoding

HEAD_BYTES = 64 << 10
MAX_DEPTH = 4  # archives inside archives

_ROTATION = re.compile(
    r"(?P<base>.+?\.(?:log|txt|out|err|json|jsonl))"
    r"(?:[.-](?:\d{1,4}|\d{8}(?:-\d+)?|\d{4}-\d\d-\d\d(?:[T_-][\d:.-]+)?))?"
)


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


def plain_bytes(found: Found, limit: int, depth: int = 0) -> Iterator[Found]:
    """Unpack what is packed and open what is an archive, until plain bytes are left.

    Args:
        found: the stream; its head, set and refusal are filled in.
        limit: bytes to which one compressed source may unpack.
        depth: how many archives it already lies in.
    """
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
        yield from plain_bytes(_unpacked(found, compression, limit), limit, depth + 1)
    elif is_zip(found.head) or is_tar(found.head):
        yield from _members(found, limit, depth)
    elif (encoding := wide_encoding(found.head)) is not None:
        yield from plain_bytes(_recoded(found, encoding), limit, depth + 1)
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
        yield from plain_bytes(_member(found, member), limit, depth + 1)


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
    return lambda: cast(BinaryIO, View(spool, 0, size))


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
