"""The explicit list of log patterns, and the way from a message to the one that takes it."""

import re
from typing import NamedTuple

from parsers.vllm_log import (
    access,
    errors,
    gpu,
    ignored,
    lifecycle,
    memory,
    preemption,
    requests,
    startup,
    stats,
)
from parsers.vllm_log.interface import Fields, LogPattern

PATTERNS: tuple[LogPattern, ...] = (
    *stats.PATTERNS,
    *requests.PATTERNS,
    *preemption.PATTERNS,
    *startup.PATTERNS,
    *memory.PATTERNS,
    *errors.PATTERNS,
    *lifecycle.PATTERNS,
    *gpu.PATTERNS,
    *access.LIFECYCLE,
    *ignored.PATTERNS,
)

_KEY = 3
_WHO = re.compile(r"(?:Engine (?P<engine>-?\d+)|(?P<count>\d+) Engines(?: Aggregated)?): ")
EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Fault))"
    r"(?:: (?P<text>.*)|\((?P<repr>.*)\))?",
    re.DOTALL,
)
_BARE_EXCEPTIONS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})


class Taken(NamedTuple):
    """A message that a pattern took."""

    pattern: LogPattern
    fields: Fields
    engine: str | None
    message: str


def _index() -> tuple[dict[str, tuple[LogPattern, ...]], tuple[LogPattern, ...]]:
    keyed: dict[str, list[LogPattern]] = {}
    anywhere: list[LogPattern] = []
    for pattern in PATTERNS:
        for prefix in pattern.prefixes:
            if len(prefix) < _KEY:
                if pattern not in anywhere:
                    anywhere.append(pattern)
            else:
                patterns = keyed.setdefault(prefix[:_KEY], [])
                if pattern not in patterns:
                    patterns.append(pattern)
    return {key: tuple(patterns) for key, patterns in keyed.items()}, tuple(anywhere)


_KEYED, _ANYWHERE = _index()


def split_engine(message: str) -> tuple[str | None, int | None, str]:
    """Split ``Engine 003: `` or ``4 Engines Aggregated: `` from a message.

    >>> split_engine("Engine 003: Avg")
    ('3', None, 'Avg')
    """
    match = _WHO.match(message)
    if match is None:
        return None, None, message
    engine = None if match["engine"] is None else str(int(match["engine"]))
    count = None if match["count"] is None else int(match["count"][:9])
    return engine, count, message[match.end() :]


def _find(message: str) -> tuple[LogPattern, Fields] | None:
    for pattern in _KEYED.get(message[:_KEY], ()):
        fields = pattern.take(message)
        if fields is not None:
            return pattern, fields
    for pattern in _ANYWHERE:
        fields = pattern.take(message)
        if fields is not None:
            return pattern, fields
    return None


def take(message: str) -> Taken | None:
    """Find the pattern that takes a message; exceptions are tried without their type as well."""
    engine, count, text = split_engine(message)
    found = _find(text)
    if found is None:
        exception = EXCEPTION.fullmatch(text)
        inner = exception["text"] if exception is not None else None
        if inner is not None:
            found = _find(inner)
            if found is not None and found[0].ignored:
                found = None
            text = inner
    if found is None:
        return None
    pattern, fields = found
    if count is not None:
        fields["num_engines"] = count
    return Taken(pattern, fields, engine, text)


def exception_line(message: str) -> str | None:
    """Return the text of a traceback's last line, else None."""
    if message[:1] in (" ", "\t") or len(message) > 1 << 16:
        return None
    match = EXCEPTION.fullmatch(message)
    if match is None:
        return None
    if match["text"] is None and match["repr"] is None and "." not in message:
        return message if message in _BARE_EXCEPTIONS or message.endswith("Error") else None
    return message
