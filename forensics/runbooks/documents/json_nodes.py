"""JSON into nodes with places: the standard library gives no positions."""

import json
import re

from forensics.runbooks.documents.nodes import Leaf, Node, Rows, Table
from forensics.runbooks.text import Mapped

_SPACE = re.compile(r"[ \t\r\n]*")
_ATOM = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|.)")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_MAX_DEPTH = 100


class JsonFaultError(Exception):
    """The text is no JSON; `offset` is where in the text it stops being one."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


def load(source: Mapped) -> Node:
    """Return the tree of a JSON text.

    Raises:
        JsonFaultError: when it is none, or nests deeper than anything sensible does.
    """
    node, at = _value(source, _skip(source.text, 0), 0)
    at = _skip(source.text, at)
    if at != len(source.text):
        raise JsonFaultError("something follows the document", at)
    return node


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _value(source: Mapped, at: int, depth: int) -> tuple[Node, int]:
    text = source.text
    if depth > _MAX_DEPTH:
        raise JsonFaultError(f"nested deeper than {_MAX_DEPTH} levels", at)
    char = text[at : at + 1]
    if char == "{":
        return _table(source, at, depth)
    if char == "[":
        return _rows(source, at, depth)
    if char == '"':
        return _string(source, at)
    match = _ATOM.match(text, at)
    if match is None:
        raise JsonFaultError("no JSON value", at)
    return Leaf(source.cut(at, match.end())), match.end()


def _table(source: Mapped, at: int, depth: int) -> tuple[Node, int]:
    text = source.text
    pairs: list[tuple[Leaf, Node]] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise JsonFaultError("a key in double quotes is expected", at)
        key, at = _string(source, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise JsonFaultError("':' is expected", at)
        value, at = _value(source, _skip(text, at + 1), depth + 1)
        pairs.append((key, value))
        at = _separator(text, at, "}")
    return Table(tuple(pairs)), at + 1


def _rows(source: Mapped, at: int, depth: int) -> tuple[Node, int]:
    text = source.text
    items: list[Node] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _value(source, at, depth + 1)
        items.append(item)
        at = _separator(text, at, "]")
    return Rows(tuple(items)), at + 1


def _separator(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise JsonFaultError(f"',' or '{closing}' is expected", at)
    return at


def _string(source: Mapped, at: int) -> tuple[Leaf, int]:
    quoted = _STRING.match(source.text, at)
    if quoted is None:
        raise JsonFaultError("a string that does not end", at)
    end = quoted.end()
    try:
        value = str(json.loads(quoted.group(), strict=False))
    except json.JSONDecodeError as error:
        raise JsonFaultError(error.msg, at + error.pos) from error
    if end - at - 2 == len(value):
        return Leaf(source.cut(at + 1, end - 1)), end
    offsets: list[int] = []
    index = at + 1
    while index < end - 1:
        offsets.append(source.offsets[index])
        match = _ESCAPE.match(source.text, index) if source.text[index] == "\\" else None
        index = index + 1 if match is None else match.end()
    offsets.append(source.offsets[end - 1])
    if len(offsets) != len(value) + 1:  # lone surrogates: keep the string, give up its places
        offsets = [source.offsets[at + 1]] * (len(value) + 1)
    return Leaf(Mapped(value, offsets)), end
