"""Finds the tables this tool keeps current in documents.

<!-- forensics:ceiling gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B context=2048 -->
…
<!-- /forensics:ceiling -->
"""

import re

from forensics.runbooks.fences import fences
from forensics.runbooks.interface import CeilingBlock
from forensics.runbooks.text import Lines, Mapped

_OPENING = re.compile(
    r"^(?P<indent>[ \t>]*)<!--[ \t]*forensics:ceiling\b(?P<body>[^\n]{0,1000}?)-->", re.M
)
_CLOSING = re.compile(r"<!--[ \t]*/forensics:ceiling[ \t]*-->")
_PAIR = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|(\S+))")


def blocks(lines: Lines) -> list[CeilingBlock]:
    """Return the blocks of a file; one that is not closed before the next has no body.

    Marks inside a fenced block are examples.
    """
    text = lines.text
    if "forensics:ceiling" not in text:
        return []
    found = []
    shown = fences(lines)
    openings = [
        match
        for match in _OPENING.finditer(text)
        if not any(first <= lines.position(match.start())[0] <= last for first, last in shown)
    ]
    for index, match in enumerate(openings):
        limit = openings[index + 1].start() if index + 1 < len(openings) else len(text)
        closing = _CLOSING.search(text, match.end(), limit)
        start = match.start("body")
        arguments = tuple(
            (pair[1], Mapped.plain(value, start + pair.start(group)))
            for pair in _PAIR.finditer(match["body"])
            for group, value in ((2, pair[2]), (3, pair[3]))
            if value is not None
        )
        body_start = min(match.end() + 1, len(text)) if closing else match.end()
        body = None
        if closing is not None:
            line_start = text.rfind("\n", 0, closing.start()) + 1
            body_end = max(line_start, body_start)
            body = Mapped.plain(text[body_start:body_end], body_start)
        opening_start = match.end("indent")
        found.append(
            CeilingBlock(
                Mapped.plain(text[opening_start : match.end()], opening_start),
                arguments,
                body,
                match["indent"],
            )
        )
    return found
