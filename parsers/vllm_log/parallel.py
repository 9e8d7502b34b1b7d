"""Reads one large log on several cores: stretches of it in worker processes, and in this one.

A stretch whose worker fails is read here. Results do not depend on how the log is divided.
"""

import gc
import io
import logging
import pickle
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from parsers.vllm_log.chunks import ChunkReader, Readable
from parsers.vllm_log.file_division import Task
from parsers.vllm_log.rows import Columns, Rows, columns, mapped, write
from parsers.vllm_log.stretches import Stretch, stretch
from parsers.vllm_log.workers import (
    Begun,
    Order,
    WorkerProcess,
    answer,
    answers,
    order_of,
    orders,
    spill_folder,
)

_LOG = logging.getLogger(__name__)

_YOUNG = 200_000  # objects between searches for cycles: rows are many, and no cycle is among them

_LARGE_BYTES = 31 << 20  # glibc keeps up to twice of that; it learns nothing from 32 MiB on


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
    reader.part.damaged_bytes += task.skipped
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
    pipe = answers()
    for task, order in orders():
        done = read_task(task, count_requests=order.count_requests)
        done = replace(done, events=write(_laid(done), order.spill))
        answer(pipe, pickle.dumps(done, pickle.HIGHEST_PROTOCOL))


class _Worker(threading.Thread):
    """Feeds one worker process; holds one task beside the one that is being read.

    Args:
        work: takes what was read.
        process: the process.
        given: numbers and tasks that it was told to read already.
    """

    def __init__(
        self, work: "_Work", process: WorkerProcess, given: Sequence[tuple[int, Task]] = ()
    ) -> None:
        super().__init__(daemon=True)
        self.inbox: queue.Queue[tuple[int, Task] | None] = queue.Queue(1)
        self._work = work
        self._process = process
        self._given = given
        self.given = {index for index, _ in given}

    def run(self) -> None:
        alive = True
        for index, task in self._given:
            alive = self._finish(index, task, alive=alive)
        while (order := self.inbox.get()) is not None:
            index, task = order
            if alive:
                alive = self._process.order(task, self._work.order(index))
            alive = self._finish(index, task, alive=alive)
        self._process.close()

    def _finish(self, index: int, task: Task, *, alive: bool) -> bool:
        """Take an answer; what a dead worker was told, this process reads."""
        done = self._answer(index) if alive else None
        self._work.finish(index, done, task)
        return done is not None

    def _answer(self, index: int) -> Stretch | None:
        answer = self._process.answer()
        if answer is None:
            return None
        try:
            done: Stretch = pickle.loads(answer)
            return replace(done, events=mapped(_laid(done), self._work.order(index).spill))
        except (OSError, pickle.UnpicklingError, EOFError):
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

    def order(self, index: int) -> Order:
        """Return how a worker is to read the task of a number."""
        return order_of(self.folder, index, count_requests=self.count_requests)

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


def read_tasks(
    tasks: Iterable[Task],
    progress: Callable[[int], None] | None = None,
    *,
    count_requests: bool,
    workers: int,
    begun: Begun | None = None,
) -> list[Stretch]:
    """Read tasks, each where there is room for it; return their stretches in order.

    Events lie in a temporary folder meanwhile; it is removed when all are mapped into memory.

    Args:
        tasks: what is to be read.
        progress: called with the bytes that are done.
        count_requests: see `ChunkReader`.
        workers: how many processes are started for it.
        begun: processes that read some of the tasks already, instead.
    """
    temporary = begun.folder if begun is not None else spill_folder()
    with _thrifty(), temporary as folder:
        work = _Work(Path(folder), count_requests=count_requests)
        if begun is None:
            threads = [_Worker(work, WorkerProcess()) for _ in range(workers)]
        else:
            threads = [_Worker(work, *worker) for worker in begun.adopted()]
        given = {index for thread in threads for index in thread.given}
        for thread in threads:
            thread.start()
        try:
            for index, task in enumerate(tasks):
                if index in given:
                    continue
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
