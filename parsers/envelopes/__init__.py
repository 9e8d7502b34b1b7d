"""What wraps a log line: container runtimes, log shippers, terminals."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Unwrapped(NamedTuple):
    """A line without its wrappers.

    Attributes:
        body: what the process printed.
        outer: the wrapper's stamp, UTC seconds.
        instance: pod, container or host that the wrapper names.
        own: clock and stamp where the server's own formatter is the wrapper (JSON logging).
    """

    body: str
    outer: float | None = None
    instance: str | None = None
    own: tuple[str, float] | None = None


def unwrap(text: str) -> Iterator[Unwrapped]:
    """Yield the records inside a physical line."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if text.startswith("\ufeff"):
        text = text[1:]
    yield Unwrapped(text)
