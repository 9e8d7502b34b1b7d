"""YAML into nodes with places: PyYAML's composed nodes, their scalars laid over the source."""

import re
from typing import TYPE_CHECKING

from forensics.runbooks.documents.nodes import Leaf, Node, Rows, Table
from forensics.runbooks.text import Mapped

if TYPE_CHECKING:
    import yaml

_MAX_DEPTH = 100
_BREAK = re.compile("\r\n?|\n|\x85|\u2028|\u2029")
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|.)", re.DOTALL
)


class YamlFaultError(Exception):
    """The text is no YAML; `offset` is where in the text it stops being one."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class _YamlLines:
    """Lines as YAML counts them: more characters break a line there than in an editor."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _BREAK.finditer(text))]


def load(source: Mapped) -> list[Node]:
    """Return the documents of a YAML text.

    Raises:
        YamlFaultError: when it is no YAML, or nests deeper than anything sensible does.
    """
    import yaml  # most runbooks hold no YAML

    lines = _YamlLines(source.text)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        composed = list(yaml.compose_all(source.text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        offset = 0 if mark is None else _offset(lines, mark)
        reason = str(getattr(error, "problem", None) or "not YAML")
        raise YamlFaultError(reason, min(offset, len(source.text))) from error
    except (RecursionError, ValueError) as error:
        raise YamlFaultError("not YAML that can be read", 0) from error
    return [_node(node, source, lines, 0) for node in composed if node is not None]


def _node(node: "yaml.Node", source: Mapped, lines: "_YamlLines", depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise YamlFaultError(f"nested deeper than {_MAX_DEPTH} levels", 0)
    if node.id == "mapping":
        pairs = []
        for key, value in node.value:
            name = _node(key, source, lines, depth + 1)
            if isinstance(name, Leaf):
                pairs.append((name, _node(value, source, lines, depth + 1)))
        return Table(tuple(pairs))
    if node.id == "sequence":
        return Rows(tuple(_node(item, source, lines, depth + 1) for item in node.value))
    start, end = _offset(lines, node.start_mark), _offset(lines, node.end_mark)
    return Leaf(_laid_over(str(node.value), source, start, end, node.style))


def _offset(lines: "_YamlLines", mark: "yaml.Mark") -> int:
    line, column = int(mark.line), int(mark.column)
    if line >= len(lines.starts):
        return len(lines.text)
    return min(lines.starts[line] + column, len(lines.text))


def _laid_over(value: str, source: Mapped, start: int, end: int, style: str | None) -> Mapped:
    """Give each character of a scalar's value its place in the source."""
    raw = source.text[start:end]
    if style in ("|", ">"):
        body = raw.find("\n") + 1
        if style == "|":
            return _literal(value, source, start + body, end)
        return _greedy(value, source, start + body, end, escapes=False)
    if style in ("'", '"'):
        inner = source.text[start + 1 : end - 1]
        if inner == value:
            return source.cut(start + 1, end - 1)
        return _greedy(value, source, start + 1, end - 1, escapes=style == '"')
    if raw == value:
        return source.cut(start, end)
    return _greedy(value, source, start, end, escapes=False)


def _literal(value: str, source: Mapped, start: int, end: int) -> Mapped:
    """Lay a literal block over its lines: only indentation was taken away."""
    offsets: list[int] = []
    at = start
    for line in value.split("\n"):
        stop = source.text.find("\n", at, end)
        stop = end if stop < 0 else stop
        first = max(at, stop - len(line) - (source.text[stop - 1 : stop] == "\r"))
        offsets.extend(source.offsets[min(first + index, end)] for index in range(len(line) + 1))
        at = min(stop + 1, end)
    return Mapped(value, offsets)


def _greedy(value: str, source: Mapped, start: int, end: int, *, escapes: bool) -> Mapped:
    """Lay a folded or escaped scalar over the source, character by character."""
    text = source.text
    offsets: list[int] = []
    at = start
    for char in value:
        if at < end and text[at] == "\\" and escapes:
            match = _ESCAPE.match(text, at, end)
            while match is not None and match.group()[1:2] in ("\n", "\r"):
                at = match.end()
                match = _ESCAPE.match(text, at, end) if text[at : at + 1] == "\\" else None
            if match is not None:
                offsets.append(source.offsets[at])
                at = match.end()
                continue
        if char in " \n":
            offsets.append(source.offsets[min(at, end)])
            if at < end and text[at] in " \t\r\n":
                folds = text[at] in "\r\n" or text[at : at + 2].strip(" \t")[:1] in ("\r", "\n")
                at += 1
                while folds and at < end and text[at] in " \t\r\n":
                    at += 1
            continue
        while at < end and text[at] != char and text[at] in " \t\r\n":
            at += 1
        offsets.append(source.offsets[min(at, end)])
        at += 2 if text[at : at + 2] == "''" == char * 2 else 1
    offsets.append(source.offsets[min(at, end)])
    return Mapped(value, offsets)
