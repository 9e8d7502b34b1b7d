"""Reads `promtool tsdb dump`, and calls it on a TSDB block, snapshot or data directory.

A TSDB is a directory of blocks, each with ``meta.json``, ``index`` and ``chunks/``; a running
server's data directory has a write-ahead log besides. Its binary form belongs to Prometheus, so
`promtool` reads it; where that is not installed, the message says what to run instead.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO

from forensics.errors import InputError
from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.sample_reader import SampleReader

_LINE = re.compile(
    rb'^\{[^\n]*__name__="(?:[^"\\\n]|\\.)*"[^\n]*\} (?:\S+|\{count:[^\n]*\}) -?[0-9]+\r?$',
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
        reader = SampleReader(source, options)
        reader.read(progress)
        return reader.finish(self.name)


def is_tsdb_dir(path: str | Path) -> bool:
    """Tell whether a directory is a TSDB block, or holds blocks (snapshot, data directory)."""
    try:
        return bool(_blocks(Path(path))) or (Path(path) / "wal").is_dir()
    except OSError:
        return False


def convert(path: str | Path) -> BinaryIO:
    """Return the `promtool tsdb dump` of a block, snapshot or data directory, ready to be read.

    Nothing is written into the directory: promtool gets a mirror of links to its files.

    Raises:
        InputError: promtool is not installed or cannot read the directory.
    """
    promtool = shutil.which("promtool")
    if promtool is None:
        raise InputError(
            f"{path} is a Prometheus TSDB directory, and promtool, which reads it, is missing; "
            f"where it is, run: promtool tsdb dump {path} > dump.txt, and give that file",
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
            raise InputError(f"{path}: promtool did not finish: {error}", str(path)) from error
    if done.returncode != 0 or (done.stderr and dump.tell() == 0):
        dump.close()
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        raise InputError(f"{path}: promtool could not read this TSDB: {reason[0]}", str(path))
    dump.seek(0)
    return dump


def _blocks(path: Path) -> list[Path]:
    """Return the blocks that a directory is or holds."""
    if _is_block(path):
        return [path]
    return sorted(child for child in path.iterdir() if child.is_dir() and _is_block(child))


def _is_block(path: Path) -> bool:
    """Tell whether a directory is one block."""
    return (
        (path / "meta.json").is_file() and (path / "index").is_file() and (path / "chunks").is_dir()
    )


def _mirror(path: Path, mirror: Path) -> None:
    """Lay out a data directory of links: promtool wants blocks inside one, and a log beside."""
    for block in _blocks(path):
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
