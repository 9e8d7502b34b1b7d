"""Worker processes that read stretches of a log: how they are started, told and heard.

They are plain interpreters that are fed through pipes, so no import of the caller's main module
takes place. They are told a stretch of a file, or are handed the bytes where the log has to be
unpacked first.

Importing the libraries of tables takes as long as reading a hundred megabytes. So workers for a
file that is large and looks like a log are started before that, and told the first stretches; what
they read is dropped if the file turns out to be read another way. This module needs nothing heavy.
"""

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

from parsers.vllm_log.file_division import Task, file_tasks

WORTH_BYTES = 160 << 20  # below, a second interpreter takes as long to start as it saves
MAX_WORKERS = 7
EARLY_TASKS = 6  # for each worker: as much as is read while the libraries are imported, measured

_HEAD_BYTES = 16 << 10
_LOG_LINE = re.compile(  # in whatever wrapper
    rb"(?:^|[ \t\"])(?:DEBUG|INFO|WARNING|ERROR)(?: \d\d-\d\d \d\d:\d\d:\d\d |:  )",
    re.MULTILINE,
)
_LENGTH = struct.Struct("<Q")
# Nothing is left to tidy up behind the last answer, so the child leaves without that.
_CHILD = (
    "import gc, json, os, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from parsers.vllm_log.parallel import serve; serve(); os._exit(0)"
)


class Order(NamedTuple):
    """How a stretch is to be read, and the file that its rows are written to."""

    count_requests: bool
    spill: Path


def order_of(folder: Path, index: int, *, count_requests: bool) -> Order:
    """Return the order for the task of a number."""
    return Order(count_requests, folder / str(index))


def spill_folder() -> "TemporaryDirectory[str]":
    """Return a new temporary folder for rows."""
    return TemporaryDirectory(prefix="forensics-", ignore_cleanup_errors=True)


class WorkerProcess:
    """One worker, seen from the process that started it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def order(self, task: Task, order: Order) -> bool:
        """Tell the worker to read a stretch; False if it is dead."""
        pipe = self._process.stdin
        given = [task.start, task.end, task.path, task.skipped]
        words = [*given, order.count_requests, str(order.spill)]
        try:
            assert pipe is not None
            pipe.write(json.dumps(words).encode() + b"\n")
            if task.path is None:
                pipe.write(task.data)
            pipe.flush()
        except OSError:
            return False
        return True

    def answer(self) -> bytes | None:
        """Wait for the next answer; None if the worker is dead."""
        pipe = self._process.stdout
        try:
            assert pipe is not None
            (length,) = _LENGTH.unpack(pipe.read(_LENGTH.size))
            data = pipe.read(length)
        except (OSError, struct.error):
            return None
        return data if len(data) == length else None

    def close(self) -> None:
        """Let the worker end."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()

    def kill(self) -> None:
        """End the worker at once."""
        self._process.kill()
        self.close()


def orders() -> Iterator[tuple[Task, Order]]:
    """Yield what this process, a worker, is told to read."""
    pipe = sys.stdin.buffer
    while line := pipe.readline():
        start, end, path, skipped, count_requests, spill = json.loads(line)
        data = pipe.read(end - start - skipped) if path is None else b""
        yield Task(start, end, path, data, skipped), Order(count_requests, Path(spill))


def answers() -> BinaryIO:
    """Return where this process, a worker, answers; what it prints goes elsewhere from now on."""
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr
    return pipe


def answer(pipe: BinaryIO, data: bytes) -> None:
    """Answer an order."""
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def workers_for(size: int) -> int:
    """Return how many worker processes are worth their start."""
    if size < WORTH_BYTES or not sys.executable:
        return 0
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores - 1, MAX_WORKERS, size // WORTH_BYTES)


@dataclass(slots=True)
class Begun:
    """A log that workers read already.

    Attributes:
        path / size: the file, and how long it was.
        tasks: the whole file in stretches.
        folder: where rows are written.
        given: per worker the numbers and tasks it was told.
    """

    path: str
    size: int
    tasks: list[Task]
    folder: "TemporaryDirectory[str]"
    workers: list[WorkerProcess]
    given: list[list[tuple[int, Task]]]

    def reads(self, path: str | None, size: int) -> bool:
        """Tell whether the workers read this file, and nobody adopted them yet."""
        return bool(self.workers) and (self.path, self.size) == (path, size)

    def adopted(self) -> list[tuple[WorkerProcess, list[tuple[int, Task]]]]:
        """Hand the workers over to the caller, who closes them."""
        workers, self.workers = self.workers, []
        return list(zip(workers, self.given, strict=True))

    def abandon(self) -> None:
        """End workers that nobody adopted, and drop what they read."""
        for worker in self.workers:
            worker.kill()
        self.workers = []
        self.folder.cleanup()


def begin(paths: Sequence[str]) -> Begun | None:
    """Have workers read the first stretches of a large log, if there is one among the paths."""
    for path in paths:
        with suppress(OSError, ValueError):
            place = Path(path)
            size = place.stat().st_size if path and place.is_file() else 0
            workers = workers_for(size)
            if workers and _looks_like_log(place):
                return _begun(path, size, workers)
    return None


def _looks_like_log(place: Path) -> bool:
    with place.open("rb") as file:
        return _LOG_LINE.search(file.read(_HEAD_BYTES)) is not None


def _begun(path: str, size: int, workers: int) -> Begun:
    folder = spill_folder()
    processes = [WorkerProcess() for _ in range(workers)]
    tasks = file_tasks(path, size)
    early = list(enumerate(tasks))[: min(EARLY_TASKS * workers, len(tasks) // 2)]
    given = [early[number::workers] for number in range(workers)]
    for process, own in zip(processes, given, strict=True):
        for index, task in own:
            process.order(task, order_of(Path(folder.name), index, count_requests=True))
    return Begun(path, size, tasks, folder, processes, given)
