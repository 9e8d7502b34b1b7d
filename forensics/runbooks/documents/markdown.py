"""Markdown documents: fenced blocks, inline code, tables, and commands pasted into running text.

Blocks come from markdown-it; inline code is found by our own scan of the source lines, since the
parser keeps no positions inside a line.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from forensics.runbooks.documents import structured
from forensics.runbooks.documents.parts import METRIC, Parts, parses
from forensics.runbooks.fences import MOST_UNCLOSED
from forensics.runbooks.interface import Prose
from forensics.runbooks.log_patterns import is_logql
from forensics.runbooks.serve import single_flag
from forensics.runbooks.text import Lines, Mapped, joined

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SHELL = frozenset(
    {
        "sh",
        "bash",
        "shell",
        "zsh",
        "console",
        "terminal",
        "shell-session",
        "sh-session",
        "powershell",
    }
)
_PROMQL = frozenset({"promql", "prometheus", "metricsql", "prom"})
_YAML = frozenset({"yaml", "yml"})
_GUESSED = frozenset({"", "text", "txt", "plain", "plaintext", "none"})
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_COMMAND = re.compile(
    r"(?:[$#>]\s+)?(?:[A-Z_]+=\S*\s+)*(?:sudo\s+|nohup\s+|exec\s+|uv run\s+)*"
    r"(?:vllm\s+serve|python3?\s+(?:-m\s+vllm\S*|\S*vllm/\S+)|(?:docker|podman|nerdctl)\s+(?:run|logs|compose)"
    r"|kubectl\s+(?:-\S+\s+\S+\s+)*logs|z?e?f?grep|rg|journalctl|curl|promtool|logcli|stern"
    r"|tail|cat|zcat|awk)\s"
)
_LEAD = re.compile(r"(?:\s|>|[-*+]\s|\d+[.)]\s|\*\*|#+\s)*")
_EXPOSITION = re.compile(
    r"^(?:# (?:HELP|TYPE)|vllm[:_]\w+(?:\{[^}]*\})? [-+\dNI][\w.+-]*(?: \d+)?$)", re.M
)
_YAML_SIGNS = re.compile(
    r"^\s*(?:- )?(?:groups|kind|services|apiVersion|alert|record|expr|args):", re.M
)
_SHORTHAND = re.compile(r"(vllm:[a-zA-Z_][\w:]*)(\*|(?:/_\w+)+|\{(?:[\w ,|/.…]|=(?![\"\'~]))*\})?")
"""A metric as people name it in running text: alone, with a star, with further suffixes behind a
slash, or with the names of its labels in braces."""
_QUERY_STARTS = re.compile(
    r"^\s*(?:-?\(|sum|avg|max|min|rate|irate|increase|histogram_quantile|vllm[:_])"
)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # not needed for rule files and dashboards

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def add_markdown(lines: Lines, first_line: int, parts: Parts) -> None:
    """Take the Markdown from a line (from 1) to the end of the file apart."""
    following: int | None = first_line
    for _ in range(MOST_UNCLOSED):
        if following is None:
            break
        following = _add_from(lines, following, parts)


def _add_from(lines: Lines, first_line: int, parts: Parts) -> int | None:
    """Take the Markdown from a line on; return where to go on behind a fence nobody closed."""
    start = lines.starts[first_line - 1]
    headings: list[tuple[int, str]] = []
    heading: int | None = None
    last_line = 0
    # The parser takes a lone carriage return for a line break, editors and `Lines` do not.
    text = re.sub(r"\r(?!\n)", " ", lines.text[start:])
    for token in _parser().parse(text):
        if token.map is None:
            continue
        low, high = token.map[0] + first_line, token.map[1] + first_line
        if token.type == "fence":
            if _unclosed(lines, low, high, token):
                following = _add_unclosed(lines, low, high, token, parts)
                if following is not None:
                    return following
            else:
                _add_code(_content(lines, low + 1, token.content), token.info, parts)
        elif token.type == "code_block":
            _add_code(_content(lines, low, token.content), "", parts)
        elif token.type == "heading_open":
            heading = int(token.tag[1:])
        elif token.type == "inline":
            if heading is not None:
                headings = [entry for entry in headings if entry[0] < heading]
                headings.append((heading, token.content.lower()))
                heading = None
            topic = "\n".join([*(text for _, text in headings), token.content.lower()])
            number = max(low, last_line)
            paragraph = [lines.line(at) for at in range(number, high)]
            if paragraph:
                parts.prose.append(Prose(joined(paragraph), topic))
            while number < high:
                line = lines.line(number)
                begins = _command_start(line.text)
                if begins is None:
                    _add_line(line, parts)
                else:  # a pasted command goes on behind a backslash
                    pieces = [line.cut(begins, len(line.text))]
                    while pieces[-1].text.rstrip().endswith("\\") and number + 1 < high:
                        number += 1
                        pieces.append(lines.line(number))
                    parts.add_shell(joined(pieces))
                number += 1
            last_line = max(last_line, high)
    return None


def _content(lines: Lines, number: int, content: str) -> Mapped:
    """Lay the content of a code block over its source lines: containers took their marks away."""
    pieces = []
    for offset, text in enumerate(content.split("\n")[:-1]):
        if number + offset > len(lines):
            break
        line = lines.line(number + offset)
        cut = len(line.text) - len(text)
        if cut >= 0 and line.text.endswith(text):
            pieces.append(line.cut(cut, len(line.text)))
        else:  # tabs were expanded: the whole line is as near as it gets
            pieces.append(line)
    return joined(pieces)


def _unclosed(lines: Lines, low: int, high: int, token: "Token") -> bool:
    last = lines.line(min(high - 1, len(lines))).text
    return high - low < 2 or re.search(rf"{re.escape(token.markup)}\s*$", last) is None


def _add_unclosed(lines: Lines, low: int, high: int, token: "Token", parts: Parts) -> int | None:
    """Take the code of a fence nobody closed; return the line below it.

    For the parser it runs to the end of the file, for people it ends at a blank line.
    """
    content = token.content.split("\n")
    length = next((at for at, text in enumerate(content) if not text.strip()), len(content))
    code = _content(lines, low + 1, "\n".join(content[:length]) + "\n")
    _add_code(code, token.info, parts)
    below = low + 1 + length
    return below if below < high and token.level == 0 else None


def _add_code(code: Mapped, info: str, parts: Parts) -> None:
    language = (info.split() or [""])[0].lower().strip("{}.")
    if language in _SHELL:
        parts.add_shell(code)
    elif language in _PROMQL:
        _add_queries(code, parts)
    elif language in _YAML:
        structured.add_yaml(code, parts)
    elif language == "json":
        if METRIC.search(code.text) and re.search(r'"(?:expr|targets|panels)"', code.text):
            structured.add_json(code, parts)
    elif language == "logql":
        parts.add_query(code, "text")
    elif language in _GUESSED:
        _add_guessed(code, parts)


def _add_guessed(code: Mapped, parts: Parts) -> None:
    """A block without a language: what it holds is told by its looks, or it is left alone."""
    text = code.text
    if is_logql(text):
        parts.add_query(code, "text")
    elif any(_COMMAND.match(line.lstrip()) for line in text.split("\n")):
        parts.add_shell(code)
    elif METRIC.search(text) is None or _EXPOSITION.search(text):
        return
    elif _YAML_SIGNS.search(text):
        structured.add_yaml(code, parts)
    elif _QUERY_STARTS.match(text):
        _add_queries(code, parts)


def _add_queries(code: Mapped, parts: Parts) -> None:
    """Take the expressions of a block: paragraphs, or lines where a paragraph is no expression."""
    for paragraph in _paragraphs(code):
        if _EXPOSITION.search(paragraph.text):
            continue
        lines = [line for line in paragraph.lines() if line.text.strip()]
        whole_lines = len(lines) > 1 and not parses(paragraph.text)
        if whole_lines and sum(parses(line.text) for line in lines) * 2 >= len(lines):
            for line in lines:
                parts.add_query(line, "text")
        else:
            parts.add_query(paragraph, "text")


def _paragraphs(code: Mapped) -> Iterator[Mapped]:
    """Cut at blank lines and at lines that are comments."""
    start = end = -1
    at = 0
    for line in [*code.text.split("\n"), ""]:
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "//", "--")):
            if start >= 0:
                yield code.cut(start, end)
            start = -1
        else:
            start = at if start < 0 else start
            end = at + len(line)
        at += len(line) + 1


def _command_start(text: str) -> int | None:
    """Where a command begins in a line of running text; None when the line is none."""
    lead = _LEAD.match(text)
    start = 0 if lead is None else lead.end()
    return start if _COMMAND.match(text, start) else None


def _add_line(line: Mapped, parts: Parts) -> None:
    """Take one line of running text: inline code, names of metrics."""
    text = line.text
    covered: list[tuple[int, int]] = []
    for match in _CODE.finditer(text):
        covered.append(match.span())
        _add_inline(line.cut(*match.span(2)), parts)
    for match in re.finditer(r"(?<![\w/.`:-])vllm:[a-z_][a-z0-9_]+", text):
        if not any(low <= match.start() < high for low, high in covered):
            parts.add_query(line.cut(*match.span()), "text")


def _add_inline(code: Mapped, parts: Parts) -> None:
    text = code.text.strip()
    code = code.cut(len(code.text) - len(code.text.lstrip()), len(code.text.rstrip()))
    if _COMMAND.match(text):
        parts.add_shell(code)
    elif is_logql(text):
        parts.add_query(code, "text")
    elif text.startswith(("-", "–", "—", "−")):
        found = single_flag(code)
        if found is not None:
            parts.commands.append(found)
    elif (short := _SHORTHAND.fullmatch(text)) is not None:
        if short[2] != "*":
            parts.add_query(code.cut(*short.span(1)), "text")
    elif METRIC.search(text) and not _EXPOSITION.search(text) and _is_query(text):
        parts.add_query(code, "text")


def _is_query(text: str) -> bool:
    """What begins like a query is held to be one, broken or not; the rest has to parse."""
    return _QUERY_STARTS.match(text) is not None or parses(text)
