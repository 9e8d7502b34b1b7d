"""Reads one large log on several cores: stretches of it in worker processes, and in this one.

Workers are plain interpreters that this process starts and feeds through pipes, so no import of the
caller's main module takes place. They are told a stretch of a file, or are handed the bytes where
the log has to be unpacked first. A stretch whose worker fails is read here. Results do not depend
on how the log is divided.
"""

import gc
import io
import json
import logging
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from parsers.vllm_log.chunks import ChunkReader, Readable
from parsers.vllm_log.rows import Columns, Rows, columns, mapped, write
from parsers.vllm_log.stretches import Stretch, stretch

_LOG = logging.getLogger(__name__)

WORTH_BYTES = 160 << 20  # below, a second interpreter takes as long to start as it saves
MAX_WORKERS = 7

_LENGTH = struct.Struct("<Q")
# Nothing is left to tidy up behind the last answer, so the child leaves without that.
_CHILD = (
    "import gc, json, os, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from {module} import serve; serve(); os._exit(0)"
)
_YOUNG = 200_000  # objects between searches for cycles: rows are many, and no cycle is among them

_LARGE_BYTES = 31 << 20  # glibc keeps up to twice of that; it learns nothing from 32 MiB on


class Task(NamedTuple):
    """A stretch to be read: of the file at `path`, or `data` itself.

    `end` is the offset behind it.
    """

    start: int
    end: int
    path: str | None
    data: bytes | memoryview = b""


class _Bounded:
    """A reader of one stretch of a file."""

    def __init__(self, file: io.FileIO, task: Task) -> None:
        file.seek(task.start)
        self._file = file
        self._left = task.end - task.start

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer up to the end of the stretch."""
        got = self._file.readinto(buffer[: self._left]) or 0
        self._left -= got
        return got


def read_task(task: Task, *, count_requests: bool) -> Stretch:
    """Read one stretch in this process."""
    reader = ChunkReader(offset=task.start, count_requests=count_requests)
    if task.path is None:
        _drain(reader, io.BytesIO(task.data))
    else:
        with Path(task.path).open("rb", buffering=0) as file:
            _drain(reader, _Bounded(file, task))
    return stretch(reader.part)


def _drain(reader: ChunkReader, stream: Readable) -> None:
    while reader.fill(stream):
        pass


@contextmanager
def _thrifty() -> Iterator[None]:
    """Look for cycles of objects more rarely, and let freed memory be used again.

    The one costs a tenth of the time of reading. As for the other, glibc gives large arrays back to
    the system, and each page of the next one costs a fault, until it has seen one so large freed.
    """
    bytearray(_LARGE_BYTES)
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _YOUNG) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def serve() -> None:
    """Read the stretches named on standard input; answer each with a packed `Stretch`."""
    gc.freeze()
    gc.enable()
    with _thrifty():
        _serve()


def _serve() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr
    orders = sys.stdin.buffer
    while line := orders.readline():
        start, end, path, count_requests, spill = json.loads(line)
        data = orders.read(end - start) if path is None else b""
        done = read_task(Task(start, end, path, data), count_requests=count_requests)
        done = replace(done, events=write(_laid(done), Path(spill)))
        answer = pickle.dumps(done, pickle.HIGHEST_PROTOCOL)
        answers.write(_LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()


class _Worker(threading.Thread):
    """Feeds one worker process; holds one task beside the one that is being read."""

    def __init__(self, work: "_Work") -> None:
        super().__init__(daemon=True)
        self.inbox: queue.Queue[tuple[int, Task] | None] = queue.Queue(1)
        self._work = work
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(module=__name__), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self) -> None:
        alive = True
        while (order := self.inbox.get()) is not None:
            index, task = order
            done = self._ask(index, task) if alive else None
            alive = done is not None
            self._work.finish(index, done, task)
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()

    def _ask(self, index: int, task: Task) -> Stretch | None:
        orders, answers = self._process.stdin, self._process.stdout
        spill = self._work.folder / f"{index}"
        order = [task.start, task.end, task.path, self._work.count_requests, str(spill)]
        if orders is None or answers is None:
            return None
        try:
            orders.write(json.dumps(order).encode() + b"\n")
            if task.path is None:
                orders.write(task.data)
            orders.flush()
            (length,) = _LENGTH.unpack(answers.read(_LENGTH.size))
            done: Stretch = pickle.loads(answers.read(length))
            return replace(done, events=mapped(_laid(done), spill))
        except (OSError, struct.error, pickle.UnpicklingError, EOFError):
            # The worker died; this process reads the stretch, and the worker gets no more.
            return None


class _Work:
    """What was read, by number, and what workers failed to read."""

    def __init__(self, folder: Path, *, count_requests: bool) -> None:
        self.folder = folder
        self.count_requests = count_requests
        self.bytes_done = 0
        self.done: dict[int, Stretch] = {}
        self.failed: list[tuple[int, Task]] = []
        self._lock = threading.Lock()

    def finish(self, index: int, done: Stretch | None, task: Task) -> None:
        """Take a result, or a task that came back unread."""
        with self._lock:
            if done is None:
                self.failed.append((index, task))
            else:
                self.done[index] = done
                self.bytes_done += task.end - task.start

    def here(self, index: int, task: Task) -> None:
        """Read a task in this process."""
        done = read_task(task, count_requests=self.count_requests)
        self.finish(index, _spilled(done, self.folder / f"own-{index}"), task)


def _laid(done: Stretch) -> Columns:
    return columns(done.events) if isinstance(done.events, Rows) else done.events


def _spilled(done: Stretch, path: Path) -> Stretch:
    """Move the events of a stretch to a file, whence they are mapped into memory.

    Where it cannot be written (no temporary space), the events stay in memory.
    """
    laid = _laid(done)
    try:
        return replace(done, events=mapped(write(laid, path), path))
    except OSError as error:
        _LOG.warning("%s: %s; rows are kept in memory", path.parent, error.strerror or error)
        return replace(done, events=laid)


def workers_for(size: int) -> int:
    """Return how many worker processes are worth their start."""
    if size < WORTH_BYTES or not sys.executable:
        return 0
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores - 1, MAX_WORKERS, size // WORTH_BYTES)


def read_tasks(
    tasks: Iterator[Task],
    progress: Callable[[int], None] | None = None,
    *,
    count_requests: bool,
    workers: int,
) -> list[Stretch]:
    """Read tasks, each where there is room for it; return their stretches in order.

    Events lie in a temporary folder meanwhile; it is removed when all are mapped into memory.
    """
    temporary = TemporaryDirectory(prefix="forensics-", ignore_cleanup_errors=True)
    with _thrifty(), temporary as folder:
        work = _Work(Path(folder), count_requests=count_requests)
        threads = [_Worker(work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        try:
            for index, task in enumerate(tasks):
                if not any(_handed(thread, index, task) for thread in threads):
                    work.here(index, task)
                if progress is not None:
                    progress(work.bytes_done)
        finally:
            for thread in threads:
                thread.inbox.put(None)
            for thread in threads:
                thread.join()
        for index, task in work.failed:
            work.here(index, task)
    return [work.done[index] for index in range(len(work.done))]


def _handed(thread: _Worker, index: int, task: Task) -> bool:
    try:
        thread.inbox.put_nowait((index, task))
    except queue.Full:
        return False
    return True
