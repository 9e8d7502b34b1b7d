"""What the commands that ask a live server share: how to be let in, and where answers are kept."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from forensics.errors import InputError, UsageError

if TYPE_CHECKING:
    from forensics.config import Options
    from parsers.prometheus.api_http import Connection, Login

DEFAULT_SINCE_S = 6 * 3600.0
TOKEN, USER, PASSWORD = "FORENSICS_TOKEN", "FORENSICS_USER", "FORENSICS_PASSWORD"
"""Environment variables with a login; options on the command line would show in process lists."""


class Reporting(Protocol):
    """What shows progress; `forensics.cli.progress.Progress` does."""

    def report(self, path: str, done: int, total: int) -> None:
        """Show how far a source has been read."""


@contextmanager
def fetched(
    url: str, selector: str | None, options: "Options", progress: Reporting
) -> Iterator[Path]:
    """Fetch the window that the options name into a file that is there for the block.

    The login comes from the environment (`FORENSICS_TOKEN`, or `FORENSICS_USER` and
    `FORENSICS_PASSWORD`).

    Raises:
        UsageError: the address, window or selector makes no sense.
        InputError: the server cannot be reached, refuses, or has no vLLM series.
    """
    from parsers.prometheus.api import Window, collect
    from parsers.prometheus.api_http import Connection

    end = options.until if options.until is not None else time.time()
    start = options.since
    if start is None:
        start = end - (options.since_end_s or DEFAULT_SINCE_S)
    with tempfile.TemporaryDirectory(prefix="forensics-") as place:
        path = Path(place) / "prometheus.json"
        connection = Connection(url, login=login())
        with path.open("wb") as out:
            window = Window(start, end, selector or "")
            tell_warnings(collect(connection, window, out, progress.report).warnings)
        yield path


def login(token_file: Path | None = None, headers: "list[str] | None" = None) -> "Login":
    """Take the login from a file and the environment.

    Raises:
        UsageError: the file cannot be read, or a header is none.
    """
    from parsers.prometheus.api_http import Login

    token = os.environ.get(TOKEN)
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{token_file}: the token cannot be read: {error}") from error
    named = {}
    for header in headers or []:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header is written 'Name: value'")
        named[name.strip()] = value.strip()
    return Login(token, os.environ.get(USER), os.environ.get(PASSWORD), named)


def tell_warnings(warnings: tuple[str, ...]) -> None:
    """Pass on what the servers said besides the data."""
    for warning in warnings[:10]:
        print(f"forensics: the server warns: {_printable(warning)}", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long to record.

    Attributes:
        every_s: seconds between the starts of two scrapes.
        for_s: seconds to go on for.
        clock: UTC seconds.
    """

    every_s: float
    for_s: float
    clock: Callable[[], float] = time.time


def scrape(
    connection: "Connection", out: Path, pace: Pace, tell: Callable[[int, int], None]
) -> tuple[int, int]:
    """Record a `/metrics` page at an interval into one file, a time line above each scrape.

    A failed scrape leaves a comment in its place. The file is whole after each scrape, and an
    interrupt ends the recording like its time would.

    Args:
        connection: its address is the page.
        out: the file.
        pace: how often and how long.
        tell: called with (scrapes taken, scrapes failed).

    Returns:
        Scrapes taken and failed.

    Raises:
        InputError: the first scrape fails, or is no metrics page.
    """
    begun = pace.clock()
    text = _page(connection)
    taken, failed = 1, 0
    with out.open("wb") as file, suppress(KeyboardInterrupt):
        file.write(_time_line(begun) + text)
        while (due := (taken + failed) * pace.every_s) <= pace.for_s:
            file.flush()
            tell(taken, failed)
            connection.sleep(max(0.0, begun + due - pace.clock()))
            now = pace.clock()
            try:
                text = _page(connection)
                taken += 1
            except InputError:
                text = b"# this scrape failed\n"
                failed += 1
            file.write(_time_line(now) + text)
    return taken, failed


def _time_line(now: float) -> bytes:
    """Write a moment as the metrics reader finds it."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return f"# {stamp}.{int(now % 1 * 1000):03d}Z\n".encode()


def _page(connection: "Connection") -> bytes:
    """Fetch the page; it must look like one."""
    from parsers.prometheus.api_http import RefusedError

    try:
        text = connection.fetch(connection.url)
    except RefusedError as error:
        raise InputError(f"{connection.shown} refuses: {error}", connection.shown) from error
    if b"# TYPE " not in text and b"# HELP " not in text:
        raise InputError(
            f"{connection.shown} is no metrics page; vLLM's is http://HOST:PORT/metrics",
            connection.shown,
        )
    return text if text.endswith(b"\n") else text + b"\n"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:500]
