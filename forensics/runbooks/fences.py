"""Which lines of a Markdown file stand in fenced blocks, where comments are examples."""

import re

from forensics.runbooks.text import Lines

_FENCE = re.compile(r"(?:[ \t]|>|[-*+][ \t]|\d+[.)][ \t])*(`{3,}(?!.*`)|~{3,})")


MOST_UNCLOSED = 20
"""Fences without an end that are read around in one file; each costs a pass over the rest."""


def fences(lines: Lines) -> list[tuple[int, int]]:
    """Return first and last line (from 1) of each fenced block, the fences included.

    A fence that nobody closes ends at the first blank line, as people read it.
    """
    found: list[tuple[int, int]] = []
    number = 1
    count = len(lines)
    unclosed = 0
    while number <= count and unclosed < MOST_UNCLOSED:
        opening = _FENCE.match(lines.line(number).text)
        if opening is None:
            number += 1
            continue
        last, closed = _closing(lines, number + 1, opening[1])
        unclosed += not closed
        found.append((number, last))
        number = last + 1
    return found


def _closing(lines: Lines, number: int, mark: str) -> tuple[int, bool]:
    blank = None
    for at in range(number, len(lines) + 1):
        text = lines.line(at).text
        closing = _FENCE.match(text)
        if closing is not None and closing[1].startswith(mark) and text.rstrip().endswith(mark[0]):
            return at, True
        if blank is None and not text.strip():
            blank = at
    return len(lines) if blank is None else blank, False
