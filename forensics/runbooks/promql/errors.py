"""Where the mistake in an expression stands, which `promql-parser` does not say."""

import re
from dataclasses import dataclass

from forensics.runbooks.promql.tokens import Token, tokenize, unbalanced

_FUNCTION = re.compile(r"unknown function with name '([^']+)'|call to function '([^']+)'")
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<", ">", "<=", ">=", "=~", "!~"})
_WORDS = frozenset({"and", "or", "unless", "bool", "on", "ignoring", "group_left", "group_right"})
_GROUPING = frozenset({"by", "without", "on", "ignoring"})
_AGGREGATES = frozenset(
    {
        "sum",
        "avg",
        "min",
        "max",
        "count",
        "stddev",
        "stdvar",
        "group",
        "topk",
        "bottomk",
        "quantile",
        "count_values",
        "limitk",
        "limit_ratio",
    }
)
_JOINERS = _WORDS | _GROUPING | {"offset"}


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """What is wrong with an expression, and which characters of it."""

    message: str
    start: int
    end: int


def locate(text: str, words: str) -> SyntaxFault:
    """Return the place of the mistake that the library described in `words`."""
    tokens, bad = tokenize(text)
    if bad is not None:
        return SyntaxFault(f"unexpected character {text[bad]!r}", bad, bad + 1)
    lone = unbalanced(tokens)
    if lone is not None:
        return SyntaxFault(f"{lone.text!r} has no partner", lone.start, lone.end)
    named = _FUNCTION.search(words)
    if named:
        name = named[1] or named[2]
        token = next((token for token in tokens if token.text == name), None)
        if token is not None:
            return SyntaxFault(words, token.start, token.end)
    for previous, token in zip([None, *tokens], [*tokens, None], strict=True):
        fault = _misfit(previous, token, text)
        if fault is not None:
            return fault
    if not text.strip():
        return SyntaxFault(words, 0, len(text))
    return SyntaxFault(words, len(text) - len(text.lstrip()), len(text.rstrip()))


def _misfit(previous: Token | None, token: Token | None, text: str) -> SyntaxFault | None:
    """Two neighbours that no expression has."""
    if previous is None:
        return None
    if _is_operator(previous) and (token is None or token.text in (")", "]", "}")):
        return SyntaxFault(f"nothing follows {previous.text!r}", previous.start, previous.end)
    if token is None:
        return None
    if previous.text.lower() in _GROUPING and token.text != "(":
        return SyntaxFault(
            f"{previous.text!r} takes its labels in parentheses", previous.start, token.end
        )
    if _is_operator(previous) and _is_operator(token) and token.text not in ("+", "-"):
        return SyntaxFault(f"{token.text!r} right after {previous.text!r}", token.start, token.end)
    if previous.text == "%" and token.kind != "bracket":
        return None
    if _ends_operand(previous) and _starts_operand(token):
        if previous.text.lower() in _AGGREGATES and token.text.lower() in _GROUPING:
            return None
        return SyntaxFault(f"{token.text!r} is not expected here", token.start, token.end)
    if token.text == "%" and not text[token.end :].strip():
        return SyntaxFault(
            "'%' is the modulo operator; write the bare number", token.start, token.end
        )
    return None


def _is_operator(token: Token) -> bool:
    return token.text in _OPERATORS or token.text.lower() in ("and", "or", "unless")


def _ends_operand(token: Token) -> bool:
    if token.kind == "name":
        return token.text.lower() not in _JOINERS
    return token.kind in ("number", "duration", "string") or token.text in (")", "]", "}")


def _starts_operand(token: Token) -> bool:
    if token.kind == "name":
        return token.text.lower() not in _JOINERS
    return token.kind in ("number", "string")
