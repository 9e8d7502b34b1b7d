"""What pasting does to lines: Markdown marks, quotes, list bullets around a record."""

import re

from parsers.envelopes.interface import Layer

_MARKS = re.compile(
    r"[\s>*+`_~|•-]*(?:\d{1,4}[.):|]\s+)?[\s>*`_~-]*"
    r"(?=\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b|\([A-Za-z][\w ]*(?: rank=\d+)? pid=\d+\)"
    r"|Avg prompt throughput: |Running \d+ requests|Sequence \w+ is preempted)"
)
_BOLD_LEVEL = re.compile(r"(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)(?:\*\*|__|`):? ")


def markdown(text: str) -> Layer | None:
    """Take off list marks, quote marks, bold and code marks before a record, and after it."""
    match = _MARKS.match(text)
    if match is None:
        return None
    body = text[match.end() :]
    bold = _BOLD_LEVEL.match(body)
    if bold is not None:
        body = f"{bold['level']} {body[bold.end() :]}"
    elif match.end() == 0:
        return None
    marks = text[: match.end()]
    for mark in ("**", "__", "```", "`"):
        if mark in marks:
            body = body.rstrip().removesuffix(mark)
    return Layer(body)
