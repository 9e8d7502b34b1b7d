"""What an envelope is: it takes one layer off a line and says what the layer stated."""

from collections.abc import Callable
from typing import NamedTuple


class Layer(NamedTuple):
    """One wrapper taken off.

    Attributes:
        body: what was inside.
        outer: the wrapper's stamp, UTC seconds; None when it has none or its zone is unknown.
        instance: pod, container or host that it names.
        own: clock and stamp where the server's own formatter is the wrapper (JSON logging).
        partial: for runtimes that cut long lines: True when the rest follows in the next line,
            False when this is all or the last piece; None for wrappers that never cut.
        stream: which of the process' streams the line came on, where the wrapper says so.
    """

    body: str
    outer: float | None = None
    instance: str | None = None
    own: tuple[str, float] | None = None
    partial: bool | None = None
    stream: str | None = None


Envelope = Callable[[str], Layer | None]
"""Takes its layer off a line, or returns None when the line does not wear it."""
