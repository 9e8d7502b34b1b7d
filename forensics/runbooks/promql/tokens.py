"""The tokens of a PromQL expression and where they stand.

`promql-parser` gives neither positions of nodes nor of errors, so the tree is laid over these.
"""

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["name", "number", "duration", "string", "operator", "bracket", "at"]

_TOKENS = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
  | (?P<duration>(?:\d+(?:ms|[smhdwy]))+(?![\w.]))
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_:][\w:]*)
  | (?P<operator>==|!=|=~|!~|<=|>=|[-+*/%^<>=,])
  | (?P<bracket>[(){}\[\]])
  | (?P<at>@)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `start` and `end` are offsets in the expression."""

    kind: TokenKind
    text: str
    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], int | None]:
    """Return the tokens, and the offset of the first character that begins none (or None)."""
    tokens: list[Token] = []
    at = 0
    depth = 0  # a colon inside brackets parts range and step, elsewhere it belongs to a name
    while at < len(text):
        if depth and text[at] == ":":
            tokens.append(Token("operator", ":", at, at + 1))
            at += 1
            continue
        match = _TOKENS.match(text, at)
        if match is None:
            return tokens, at
        kind = match.lastgroup
        if kind != "space":
            word = match.group()
            depth += (word == "[") - (word == "]")
            tokens.append(Token(kind, word, at, match.end()))  # type: ignore[arg-type]
        at = match.end()
    return tokens, None


_CLOSING = {"(": ")", "{": "}", "[": "]"}


def unbalanced(tokens: list[Token]) -> Token | None:
    """Return the bracket that has no partner, or None."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind != "bracket":
            continue
        if token.text in _CLOSING:
            opened.append(token)
        elif not opened or _CLOSING[opened.pop().text] != token.text:
            return token
    return opened[-1] if opened else None
