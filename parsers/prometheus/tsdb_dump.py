"""Reads `promtool tsdb dump`, and calls it on a TSDB block, snapshot or data directory.

A TSDB is a directory of blocks, each with ``meta.json``, ``index`` and ``chunks/``; a running
server's data directory has a write-ahead log besides. Its binary form belongs to Prometheus, so
`promtool` reads it; where that is not installed, the message says what to run instead.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from forensics.errors import InputError
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.sample_reader import SampleReader

_LINE = re.compile(
    rb'^\{[^\n]*__name__="(?:[^"\\\n]++|\\.)*+"[^\n]*\} (?:\S+|\{count:[^\n]*\}) -?[0-9]+\r?$',
    re.MULTILINE,
)
_BLOCK_FILES = ("index", "meta.json", "chunks", "tombstones")
_HEAD_DIRECTORIES = ("wal", "chunks_head", "wbl")
_TIME_OUT_S = 3600


class TsdbDump:
    """Lines of `promtool tsdb dump`."""

    name = "promtool-tsdb-dump"

    def recognises(self, source: Source) -> bool:
        """Tell by the name that stands among the labels, and the milliseconds at the end."""
        return _LINE.search(source.head) is not None

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all lines of the source."""
        # Prometheus ends a series with a NaN (a staleness marker) that no query returns.
        reader = SampleReader(source, options, nan_ends_series=True)
        reader.read(progress)
        return reader.finish(self.name)


@dataclass(frozen=True, slots=True)
class Tsdb:
    """A TSDB on disk.

    Attributes:
        path: the data directory, snapshot, or single block.
        members: the directories that belong to it; other files below `path` do not.
    """

    path: Path
    members: tuple[Path, ...]

    def owns(self, file: Path) -> bool:
        """Tell whether a file is a part of it."""
        return any(file.is_relative_to(member) for member in self.members)


def tsdbs_below(root: Path) -> list[Tsdb]:
    """Find the TSDBs at or below a directory, outermost first."""
    found: list[Tsdb] = []
    places = {root, *(meta.parent.parent for meta in root.rglob("meta.json"))}
    for place in sorted(places):
        tsdb = _tsdb_at(place) if place.is_relative_to(root) else None
        if tsdb is not None and not any(outer.owns(place) for outer in found):
            found.append(tsdb)
    return found


def _tsdb_at(path: Path) -> Tsdb | None:
    """Return the TSDB whose top directory this is."""
    try:
        if _is_block(path):
            return Tsdb(path, (path,))
        blocks = [child for child in sorted(path.iterdir()) if _is_block(child)]
        heads = [path / name for name in _HEAD_DIRECTORIES if (path / name).is_dir()]
    except OSError:
        return None
    if not blocks and not (len(heads) > 1 and (path / "wal").is_dir()):
        return None
    return Tsdb(path, (*blocks, *heads))


def convert(path: str | Path) -> BinaryIO:
    """Return the `promtool tsdb dump` of a block, snapshot or data directory, ready to be read.

    Nothing is written into the directory: promtool gets a mirror of links to its files.

    Raises:
        InputError: promtool is not installed or cannot read the directory; the message does not
            repeat the path.
    """
    promtool = shutil.which("promtool")
    if promtool is None:
        raise InputError(
            "a Prometheus TSDB directory, and promtool, which reads it, is not installed; where it "
            f"is, run: promtool tsdb dump {path} > dump.txt, and give that file",
            str(path),
        )
    with tempfile.TemporaryDirectory(prefix="forensics-tsdb-") as mirror:
        _mirror(Path(path).resolve(), Path(mirror))
        dump = tempfile.TemporaryFile()  # noqa: SIM115 - handed to the caller, who closes it
        try:
            done = subprocess.run(
                [promtool, "tsdb", "dump", mirror],
                stdin=subprocess.DEVNULL,
                stdout=dump,
                stderr=subprocess.PIPE,
                timeout=_TIME_OUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            dump.close()
            raise InputError(f"promtool did not finish: {error}", str(path)) from error
    if done.returncode != 0 or (done.stderr and dump.tell() == 0):
        dump.close()
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        raise InputError(f"promtool could not read this TSDB: {reason[0]}", str(path))
    dump.seek(0)
    return dump


def _is_block(path: Path) -> bool:
    """Tell whether a directory is one block."""
    return (
        (path / "meta.json").is_file() and (path / "index").is_file() and (path / "chunks").is_dir()
    )


def _mirror(path: Path, mirror: Path) -> None:
    """Lay out a data directory of links: promtool wants blocks inside one, and a log beside."""
    tsdb = _tsdb_at(path)
    blocks = [member for member in tsdb.members if _is_block(member)] if tsdb is not None else []
    for block in blocks:
        inside = mirror / block.name
        inside.mkdir()
        for name in _BLOCK_FILES:
            if (block / name).exists():
                (inside / name).symlink_to(block / name)
    for name in _HEAD_DIRECTORIES:
        if (path / name).is_dir():
            # Copied: promtool replays the log and may repair a torn end of it.
            shutil.copytree(path / name, mirror / name)
    (mirror / "wal").mkdir(exist_ok=True)
