"""Comments in a document that speak to this tool: targets, disabled checks, snoozes.

Forms, each in the comment style of its file (`<!-- … -->`, `# …`, or a JSON string)::

    forensics: disable=RB101,RB106          from here to `enable=` or the end; in a comment behind
                                            code, that line only
    forensics: enable=RB101
    forensics: disable-next-line=RB101      the next line, or the whole fenced block it opens
    forensics: snooze=2027-01-31 RB101 why  until and with that day
    forensics: vllm-version=0.11 gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B context=2048
"""

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from forensics.runbooks.fences import fences
from forensics.runbooks.text import Lines, Mapped

DirectiveKind = Literal["disable", "enable", "disable-next-line", "snooze", "settings", "fault"]

_BODY = r"[ \t]*forensics:(?!ceiling\b)[ \t]*(?P<{}>[^\n]{{0,500}}?)[ \t]*"
_COMMENT = re.compile(
    "<!--"
    + _BODY.format("html")
    + r"-->|(?:(?<![^\s\"'])#|//)"
    + _BODY.format("hash")
    + r"\r?$|\""
    + _BODY.format("json")
    + '"',
    re.MULTILINE,
)
_PAIR = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|(\S+))")
_RULE = re.compile(r"[\w-]+")
SETTINGS = ("vllm-version", "engine", "gpu", "model", "context", "tp", "scrape-interval")
"""What a directive and the front matter may set for their document."""
_VERBS: dict[str, DirectiveKind] = {
    "disable": "disable",
    "enable": "enable",
    "disable-next-line": "disable-next-line",
}
_FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Directive:
    """One comment to this tool.

    Attributes:
        kind: ``fault`` for one that is not understood.
        place: where its words stand.
        rules: the checks it names, as written.
        first_line / last_line: the lines it speaks of; for settings, the whole file.
        until: the last day of a snooze.
        reason: of a snooze, or what is wrong with a fault.
        settings: what it sets.
    """

    kind: DirectiveKind
    place: Mapped
    rules: tuple[Mapped, ...]
    first_line: int
    last_line: int
    until: date | None = None
    reason: str = ""
    settings: tuple[tuple[str, str], ...] = ()


def directives(lines: Lines, *, markdown: bool) -> list[Directive]:
    """Return the directives of a file in source order.

    In Markdown a comment of HTML inside a fenced block is an example of one, and `#` begins a
    comment only inside such a block, for which alone it speaks.
    """
    if "forensics:" not in lines.text:
        return []
    blocks = fences(lines) if markdown else []
    found = []
    for match in _COMMENT.finditer(lines.text):
        form = match.lastgroup or "html"
        directive = _directive(lines, match.start(form), match.end(form), match.start())
        if markdown:
            line, _ = lines.position(match.start(form))
            block = next((span for span in blocks if span[0] <= line <= span[1]), None)
            if (block is None) != match.group().startswith("<!--"):
                continue
            if block is not None:
                last = min(directive.last_line, block[1])
                directive = replace(directive, last_line=last)
        found.append(directive)
    return found


def _directive(lines: Lines, start: int, end: int, comment: int) -> Directive:
    place = Mapped.plain(lines.text[start:end], start)
    line, _ = lines.position(start)
    last = len(lines)
    written, _, rest = place.text.partition("=")
    rest_at = len(written) + 1
    verb = _VERBS.get(written)
    if verb is not None:
        rules = tuple(place.cut(*match.span()) for match in _RULE.finditer(place.text, rest_at))
        if not rules:
            return _fault(place, line, f"'{verb}=' names no check; write {verb}=RB101")
        if verb == "disable-next-line":
            return Directive(verb, place, rules, *_next_block(lines, line))
        behind_code = lines.text[lines.starts[line - 1] : comment].strip()
        if verb == "disable" and behind_code and lines.text[comment] != '"':
            return Directive("disable", place, rules, line, line)
        if lines.text[comment] == '"':  # JSON has no comments: a string speaks for the file
            return Directive(verb, place, rules, 1, last)
        return Directive(verb, place, rules, line, last)
    if written == "snooze":
        return _snooze(place, rest, rest_at, line, last)
    pairs = [(match[1], match[2] or match[3] or "") for match in _PAIR.finditer(place.text)]
    if not pairs or _PAIR.sub("", place.text).strip():
        return _fault(place, line, "not understood; see docs/lint.md for the forms")
    unknown = next((key for key, _ in pairs if key not in SETTINGS), None)
    if unknown is not None:
        return _fault(place, line, f"'{unknown}' is no setting; there are {', '.join(SETTINGS)}")
    return Directive("settings", place, (), 1, last, settings=tuple(pairs))


def _snooze(place: Mapped, rest: str, rest_at: int, line: int, last: int) -> Directive:
    words = list(re.finditer(r"\S+", rest))
    try:
        until = date.fromisoformat(words[0].group()) if words else None
    except ValueError:
        until = None
    if until is None or len(words) < 2:
        return _fault(place, line, "write snooze=2027-01-31 RB101 and the reason")
    names = words[1].group()
    rules = tuple(
        place.cut(
            rest_at + words[1].start() + match.start(), rest_at + words[1].start() + match.end()
        )
        for match in _RULE.finditer(names)
    )
    reason = rest[words[1].end() :].strip()
    return Directive("snooze", place, rules, line, last, until, reason)


def _fault(place: Mapped, line: int, reason: str) -> Directive:
    return Directive("fault", place, (), line, line, reason=reason)


def _next_block(lines: Lines, line: int) -> tuple[int, int]:
    """The next line that is not blank; where it opens a fence, all of the fenced block."""
    first = line + 1
    while first < len(lines) and not lines.line(first).text.strip():
        first += 1
    if first > len(lines):
        return line, line
    fence = _FENCE.match(lines.line(first).text)
    if fence is None:
        return first, first
    for last in range(first + 1, len(lines) + 1):
        closing = _FENCE.match(lines.line(last).text)
        if closing is not None and closing[1].startswith(fence[1]):
            return first, last
    return first, len(lines)
