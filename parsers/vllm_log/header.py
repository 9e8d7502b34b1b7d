"""The head of a log line: process prefixes, level, stamp and file, in every release's spelling.

* 0.2.0 to 0.7.3: ``INFO 01-15 10:23:45 metrics.py:455] message``
* 0.8.0 to 0.30.0: ``INFO 01-15 10:23:45 [loggers.py:80] message``
* 0.31.0 on: ``(APIServer pid=1) INFO 01-15 10:23:45 [loggers.py:340] message``

Older releases put the process prefix before every physical line; Ray adds its own; they nest. The
stamp has neither year nor zone. Custom formatters (`VLLM_LOGGING_CONFIG_PATH`) print a full date.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from parsers.envelopes.stamps import dated, yearless

_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z_](?:[^()]|\((?:[^()]|\([^()]*\))*\))*?)(?: rank=\d+)? pid=(?P<pid>\d+)"
    r"(?:, ip=(?P<ip>[^()]+))?\) ?"
)
_REPEATED = re.compile(r" \[repeated \d+x across cluster\](?: \(Ray .*\))?$")
_REPEATED_END = ("across cluster]", ")")
_LEVELS = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_HEAD = re.compile(
    rf"\[?(?P<level>{_LEVELS})\]?:? {{1,8}}(?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d{{1,9}})? "
    r"(?:\[?(?P<file>[\w./<>-]+\.\w+):(?P<line>\d+)\]? ?)?"
)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_BARE = re.compile(  # ``logging.basicConfig`` puts the logger's name behind the level
    rf"\[?(?P<level>{_LEVELS})\]?(?::(?:[A-Za-z_][\w.-]*):|: +| +)"
)
_DATED = re.compile(
    r"[\[(]?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>[.,]\d+)?"
    r"(?P<zone> ?(?:Z|UTC|[+-]\d\d:?\d\d))?[\])]?(?: *[-|:,] ?|[ \t]+|(?=\[)|$)"
)
_LEVEL_FIRST = re.compile(rf"\[?(?P<level>{_LEVELS})\]?:? +(?=[\[(]?\d{{4}}[-/]\d\d[-/]\d\d[T ])")
_ORIGIN = re.compile(
    rf"(?:\[?(?:{_LEVELS}|vllm[\w.]*(?::[\w<>]+)?(?::\d+)?|uvicorn[\w.]*(?::[\w<>]+)?(?::\d+)?|MainProcess|[\w./-]+\.py:\d+|\d+)\]?"
    r"(?: +- +| *\| *|: +|\] +| +(?=\[)| +))"
)


class Process(NamedTuple):
    """Who printed a line, by its prefix: family name, data-parallel rank if named, pid."""

    name: str | None
    engine: str | None
    pid: int | None


class Head(NamedTuple):
    """What stands before the message; `clock` is ``none`` when nothing stamps the line."""

    process: Process
    level: str | None
    clock: str
    stamp: float | None
    message: str


NOBODY = Process(None, None, None)
_FAMILIES = (
    (re.compile(r"(?:API|Api)Server(?:_DPRank_(?P<dp>\d+))?(?:_\d+)?"), "APIServer"),
    (re.compile(r"EngineCore(?:_(?:DP)?(?P<dp>\d+))?"), "EngineCore"),
    (
        re.compile(
            r"(?:Vllm|Ray)?Worker(?:Wrapper|Process|Proc)?(?:[ _](?:DP(?P<dp>\d+)|[A-Z]+\d+))*"
        ),
        "Worker",
    ),
)


@lru_cache(maxsize=4096)
def process_of(name: str, pid: str) -> Process:
    """Name the family and the data-parallel rank of a process prefix."""
    for expression, family in _FAMILIES:
        match = expression.fullmatch(name)
        if match is not None:
            rank = match["dp"]
            return Process(family, None if rank is None else str(int(rank)), int(pid[:18]))
    return Process(name, None, int(pid[:18]))


def read_head(text: str) -> Head:
    """Split process prefixes, level and stamp from the message of one record."""
    process, text = _processes(text)
    match = _HEAD.match(text)
    if match is not None:
        stamp = yearless(match["stamp"])
        clock = "none" if stamp is None else "yearless"
        return Head(process, match["level"], clock, stamp, text[match.end() :])
    first = _LEVEL_FIRST.match(text)
    level = first["level"] if first is not None else None
    start = first.end() if first is not None else 0
    date = _DATED.match(text, start)
    if date is not None:
        when = dated(date["date"], date["time"], date["fraction"], date["zone"])
        if when is not None:
            return _after_date(process, level, when, text[date.end() :])
    bare = _BARE.match(text)
    if bare is not None:
        return Head(process, bare["level"], "none", None, text[bare.end() :])
    return Head(process, None, "none", None, text)


@lru_cache(maxsize=4096)
def read_processes(prefix: bytes) -> Process | None:
    """Read what stands before a record; None when that is not process prefixes and colour only."""
    text = _COLOUR.sub("", prefix.decode(errors="replace"))
    process, rest = _processes(text)
    return process if not rest else None


def _processes(text: str) -> tuple[Process, str]:
    process = NOBODY
    while text.startswith("("):
        match = _PROCESS.match(text)
        if match is None:
            break
        named = process_of(match["name"], match["pid"])
        # An inner prefix is nearer to the line; it may not know the rank that the outer one names.
        process = Process(named.name, named.engine or process.engine, named.pid)
        text = text[match.end() :]
    if process.name is not None and text.endswith(_REPEATED_END):
        text = _REPEATED.sub("", text)
    return process, text


def _after_date(process: Process, level: str | None, when: tuple[str, float], text: str) -> Head:
    inner, text = _processes(text)
    if inner.name is not None:
        process = inner
    match = _HEAD.match(text)
    if match is not None:
        # A formatter printed both: the full date says more than vLLM's own stamp.
        return Head(process, match["level"], when[0], when[1], text[match.end() :])
    for _ in range(6):
        origin = _ORIGIN.match(text)
        if origin is None:
            break
        word = origin[0].strip("[]:-| ")
        if re.fullmatch(_LEVELS, word):
            level = word
        text = text[origin.end() :]
    return Head(process, level, when[0], when[1], text)
