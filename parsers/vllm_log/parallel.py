"""Reads one large log on several cores: stretches of it in worker processes, and in this one.

Workers are plain interpreters that this process starts and feeds through pipes, so no import of the
caller's main module takes place. A stretch whose worker fails is read here. Results do not depend
on how the file is divided.
"""

import json
import os
import pickle
import queue
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

from parsers.vllm_log.chunks import ChunkReader
from parsers.vllm_log.frames import Stretch, packed, spilled, stretch, unpacked

SEGMENT_BYTES = 48 << 20
SEARCH_BYTES = 8 << 20  # how far behind a cut a line end is looked for
WORTH_BYTES = 160 << 20  # below, a second interpreter takes as long to start as it saves
MAX_WORKERS = 7

_CUT_LINE = re.compile(rb'\S+ std(?:out|err) P |\{"log":"(?:[^"\\]|\\.)*(?<!\\n)","stream"')
_LENGTH = struct.Struct("<Q")
_CHILD = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {module} import serve; serve()"
)


class Segment(NamedTuple):
    """A stretch of a file that begins and ends at line ends."""

    start: int
    end: int


class _Bounded:
    """A reader of one segment of a file."""

    def __init__(self, file: FileIO, segment: Segment) -> None:
        file.seek(segment.start)
        self._file = file
        self._left = segment.end - segment.start

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer up to the end of the segment."""
        got = self._file.readinto(buffer[: self._left]) or 0
        self._left -= got
        return got


def segments(path: str, size: int, wanted: int = SEGMENT_BYTES) -> list[Segment]:
    """Divide a file at line ends, none of which a container runtime put into a line."""
    cuts = [0]
    with Path(path).open("rb") as file:
        while size - cuts[-1] > wanted * 3 // 2:
            cut = _line_end(file, cuts[-1] + wanted)
            if cut is None or cut >= size:
                break
            cuts.append(cut)
    return [Segment(start, end) for start, end in zip(cuts, [*cuts[1:], size], strict=True)]


def _line_end(file: BinaryIO, near: int) -> int | None:
    file.seek(near)
    data = file.read(1 << 16)
    while data and data.count(b"\n") < 2 and len(data) < SEARCH_BYTES:
        more = file.read(1 << 20)
        if not more:
            break
        data += more
    first = data.find(b"\n")
    while first >= 0:
        second = data.find(b"\n", first + 1)
        if second < 0:
            return None
        if _CUT_LINE.match(data, first + 1) is None:
            return near + second + 1
        first = second
    return None


def read_segment(path: str, segment: Segment, *, count_requests: bool) -> Stretch:
    """Read one stretch of a file."""
    reader = ChunkReader(offset=segment.start, count_requests=count_requests)
    with Path(path).open("rb", buffering=0) as file:
        stream = _Bounded(file, segment)
        while reader.fill(stream):
            pass
    return stretch(reader.part)


def serve() -> None:
    """Read the stretches named on standard input; answer each with a packed `Stretch`."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr
    for line in sys.stdin:
        path, start, end, count_requests, spill = json.loads(line)
        done = read_segment(path, Segment(start, end), count_requests=count_requests)
        data = packed(done, Path(spill))
        answers.write(_LENGTH.pack(len(data)))
        answers.write(data)
        answers.flush()


class _Worker(threading.Thread):
    """Feeds one worker process until there is nothing left to do or it fails."""

    def __init__(self, path: str, work: "_Work", folder: Path, *, count_requests: bool) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._work = work
        self._folder = folder
        self._count_requests = count_requests
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(module=__name__), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )

    def run(self) -> None:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            return
        while (index := self._work.take(own=False)) is not None:
            segment = self._work.segments[index]
            spill = self._folder / f"{index}.arrow"
            order = [self._path, *segment, self._count_requests, str(spill)]
            try:
                requests.write(json.dumps(order).encode() + b"\n")
                requests.flush()
                (length,) = _LENGTH.unpack(answers.read(_LENGTH.size))
                done = unpacked(answers.read(length), spill)
            except (OSError, struct.error, pickle.UnpicklingError, EOFError):
                # The worker died; this process reads the stretch, and the worker gets no more.
                self._work.give_back(index)
                break
            self._work.finish(index, done)
        requests.close()
        self._process.wait()


class _Work:
    """The stretches to be read and those that are."""

    def __init__(self, parts: Sequence[Segment]) -> None:
        self.segments = parts
        self.done: dict[int, Stretch] = {}
        self._todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._changed = threading.Condition()
        for index in range(len(parts)):
            self._todo.put(index)

    def take(self, *, own: bool) -> int | None:
        """Return the next stretch to read; a worker leaves the last one to this process."""
        with self._changed:
            if self._todo.empty() or (not own and self._todo.qsize() < 2):
                return None
            return self._todo.get()

    def give_back(self, index: int) -> None:
        with self._changed:
            self._todo.put(index)
            self._changed.notify_all()

    def finish(self, index: int, done: Stretch) -> None:
        with self._changed:
            self.done[index] = done
            self._changed.notify_all()

    def bytes_done(self) -> int:
        """Return the size of what is read."""
        with self._changed:
            return sum(self.segments[at].end - self.segments[at].start for at in self.done)

    def wait(self) -> bool:
        """Wait until all are done (False) or one was given back (True)."""
        with self._changed:
            while self._todo.empty() and len(self.done) < len(self.segments):
                self._changed.wait()
            return not self._todo.empty()


def workers_for(size: int) -> int:
    """Return how many worker processes are worth their start."""
    if size < WORTH_BYTES or not sys.executable:
        return 0
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores - 1, MAX_WORKERS, size // WORTH_BYTES)


def read_file(
    path: str,
    size: int,
    progress: Callable[[int], None] | None = None,
    *,
    count_requests: bool,
    workers: int,
    segment_bytes: int = SEGMENT_BYTES,
) -> list[Stretch]:
    """Read a plain file; return its stretches in order.

    Events lie in a temporary folder meanwhile; it is removed when all are mapped into memory.
    """
    parts = segments(path, size, segment_bytes)
    work = _Work(parts)
    with TemporaryDirectory(prefix="forensics-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        threads = [
            _Worker(path, work, folder, count_requests=count_requests) for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        while True:
            index = work.take(own=True)
            if index is not None:
                done = read_segment(path, parts[index], count_requests=count_requests)
                work.finish(index, spilled(done, folder, f"own-{index}"))
            elif not work.wait():
                break
            if progress is not None:
                progress(work.bytes_done())
        for thread in threads:
            thread.join()
    return [work.done[index] for index in range(len(parts))]
