"""Turns what the operator named into streams of plain bytes: files, directories, archives, stdin.

Each path becomes sources in a fixed order. What cannot be read becomes a refusal that says why, and
the rest is read. Files of a rotated set (``server.log``, ``server.log.1``, ``server.log.2.gz``) of
one directory share a stream and are ordered by the first stamp in them, not by name.
"""

import io
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from forensics.errors import InputError
from parsers.archives import View
from parsers.prometheus.tsdb_dump import Tsdb, convert, tsdbs_below
from parsers.unpacking import Found, plain_bytes

STDIN = "-"

_NOT_EVIDENCE = ("readme", "license", "changelog")


def discover(paths: Sequence[str], limit: int) -> Iterator[Found]:
    """Yield the streams behind paths, each path's in a stable order.

    Args:
        paths: files, directories, archives, or ``-`` for standard input.
        limit: bytes to which one compressed source may unpack.
    """
    for path in paths:
        if path == STDIN:
            yield from plain_bytes(_spooled_stdin(), limit)
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
    yield from plain_bytes(found, limit)


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
    yield from plain_bytes(found, limit)
