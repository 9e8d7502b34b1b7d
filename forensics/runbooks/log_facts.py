"""Which lines of vLLM a search pattern finds."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from forensics.catalog.log_lines import LogLine, circulating, log_lines
from forensics.runbooks.interface import LogPattern, PatternFlavour

TOPIC = re.compile(
    r"preempt|swap|evict|prefix.{0,4}cache|hit.{0,3}rate|kv.{0,3}cache|cache.{0,3}(?:usage|block)"
    r"|throughput|sequence.{0,3}group|recomput|gpu.{0,3}blocks|concurrency|\breqs\b"
    r"|(?:running|waiting|pending|swapped)\W{0,6}(?:\d|\\d|\[)|requests?.{0,4}(?:running|waiting)",
    re.IGNORECASE,
)
"""What a pattern must speak of to be held against vLLM's lines; the rest may be anyone's."""
_CLASSES = {
    "[:digit:]": r"\d",
    "[:space:]": r"\s",
    "[:alpha:]": "a-zA-Z",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:punct:]": r"!-/:-@\[-`{-~",
}
_PATIENCE_S = 2.0
_LONGEST = 500
"""Characters from which on a pattern is not tried; no one writes such a search by hand."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a pattern.

    Attributes:
        start / end: where it stands in the pattern.
        found: the lines it finds, in any release.
        circulates: it finds a line that articles show and no release prints.
        other_case: it would find lines if case did not count.
    """

    start: int
    end: int
    text: str
    found: tuple[LogLine, ...]
    circulates: bool
    other_case: bool


def branches(pattern: LogPattern) -> Iterator[Branch]:
    """Yield the alternatives of a pattern that speak of what vLLM logs."""
    text = pattern.pattern.text
    if len(text) > _LONGEST:
        return
    for start, end in _alternatives(text, pattern.flavour):
        part = text[start:end]
        if TOPIC.search(part.replace("\\", "")):
            found = _lines(part, pattern.flavour, pattern.ignore_case)
            if found is None:
                continue
            other_case = (
                not found and not pattern.ignore_case and bool(_lines(part, pattern.flavour, True))
            )
            shown = _circulates(part, pattern.flavour)
            yield Branch(start, end, part, found, shown and not found, other_case)


def _alternatives(text: str, flavour: PatternFlavour) -> list[tuple[int, int]]:
    """Cut at alternations that are in no group or class."""
    if flavour == "fixed":
        return [(0, len(text))]
    bar = r"\|" if flavour == "basic" else "|"
    cuts: list[tuple[int, int]] = []
    depth = start = at = 0
    in_class = False
    while at < len(text):
        if in_class:
            in_class = text[at] != "]"
        elif text.startswith(bar, at) and not depth:
            cuts.append((start, at))
            start = at = at + len(bar)
            continue
        elif text[at] == "\\":
            at += 1
        elif text[at] == "[":
            in_class = True
        elif flavour != "basic":
            depth += (text[at] == "(") - (text[at] == ")")
        at += 1
    cuts.append((start, len(text)))
    return cuts


@lru_cache(maxsize=1024)
def _lines(text: str, flavour: PatternFlavour, ignore_case: bool) -> tuple[LogLine, ...] | None:
    """Return the lines that a pattern finds; None when it cannot be understood.

    Values in the catalogue are samples, so a pattern whose words all stand in a line in their order
    finds it too, whatever it says of the numbers between.
    """
    finds = _searcher(_python(text, flavour), ignore_case)
    if finds is None:
        return None
    words = _words(text, flavour)
    try:
        found = tuple(
            line
            for line, shown in _shown()
            if any(finds(one) or (words and _in_order(words, one, ignore_case)) for one in shown)
        )
    except TimeoutError:
        return None
    return found if found or words else None


def _searcher(pattern: str, ignore_case: bool) -> Callable[[str], bool] | None:
    """Return a search for a pattern that gives up in time; None when it is no pattern.

    A pattern is anyone's text, and one with nested repetitions would search for years. The limit is
    far above what any pattern that ends takes, so what ordinary ones find does not depend on it.
    """
    import regex  # only documents that search logs need it

    try:
        compiled = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, OverflowError, RecursionError):
        return None
    deadline = time.monotonic() + _PATIENCE_S

    def finds(text: str) -> bool:
        left = max(deadline - time.monotonic(), 0.001)
        return compiled.search(text, timeout=left) is not None

    return finds


def _in_order(words: Sequence[str], text: str, ignore_case: bool) -> bool:
    """Tell whether all words stand in a text, one behind the other."""
    at = 0
    if ignore_case:
        text = text.lower()
    for word in words:
        found = text.find(word.lower() if ignore_case else word, at)
        if found < 0:
            return False
        at = found + len(word)
    return True


def _circulates(text: str, flavour: PatternFlavour) -> bool:
    words = _words(text, flavour)
    return bool(words) and any(_in_order(words, line, True) for line in circulating())


@cache
def _shown() -> tuple[tuple[LogLine, tuple[str, ...]], ...]:
    """The lines as they stand in a log, with both forms of the line prefix."""
    return tuple(
        (
            line,
            tuple(
                f"{prefix}{text}"
                for text in line.texts
                for level in line.levels
                for prefix in (
                    f"{level} 01-15 10:23:45 {line.source or 'a.py'}:1] ",
                    f"(EngineCore pid=1) {level} 01-15 10:23:45 [{line.source or 'a.py'}:1] ",
                )
            ),
        )
        for line in log_lines()
    )


def _python(text: str, flavour: PatternFlavour) -> str:
    """Return a grep pattern as Python's `re` reads it."""
    if flavour == "fixed":
        return re.escape(text)
    for name, chars in _CLASSES.items():
        text = text.replace(name, chars)
    if flavour != "basic":
        return text
    # In basic expressions the bare characters are literal and the escaped ones mean something.
    return re.sub(
        r"\\([+?(){}|])|([+?(){}|])",
        lambda match: match[1] if match[1] else "\\" + match[2],
        text,
    )


def _words(text: str, flavour: PatternFlavour) -> list[str]:
    """Return the literal runs of a pattern that are long enough to tell something."""
    if flavour != "fixed":
        text = re.sub(r"\[[^\]]*\](?:[*+?]|\{[^}]*\})?|\(\?[a-zA-Z]+\)", "\0", text)
        text = re.sub(r"\\[dswDSWbB](?:[*+?]|\{[^}]*\})?|\.(?:[*+?]|\{[^}]*\})?", "\0", text)
        text = re.sub(r"\\(.)", r"\1", text)
        text = re.sub(r"[()^$?*+|{}]", "\0", text)
    text = re.sub(r"\d+(?:\.\d+)?", "\0", text)  # the catalogue's numbers are samples
    runs = [run.strip() for run in text.split("\0")]
    return [run for run in runs if len(re.findall(r"[A-Za-z]", run)) >= 3]
