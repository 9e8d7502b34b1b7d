"""The tree of a PromQL expression with the place of each node in the text.

`promql-parser` decides what the expression is; walking its tree in source order beside the tokens
gives each node its place.
"""

from datetime import timedelta

import promql_parser as library

from forensics.runbooks.promql.nodes import (
    Aggregate,
    Binary,
    Call,
    Group,
    Node,
    Number,
    Selector,
    Subquery,
    Text,
)
from forensics.runbooks.promql.tokens import Token, tokenize

_LONGEST = 20_000
_DEEPEST = 100
"""No query by hand comes near; beyond them the parsers' own stacks would be at risk."""


class PlacesLostError(Exception):
    """The tokens do not follow the tree: the expression has a form this walk does not know."""


def _depth(text: str) -> int:
    """How deep brackets nest; those inside strings count too, which only errs on the safe side."""
    depth = deepest = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


def parse(text: str) -> Node:
    """Parse an expression.

    Raises:
        ValueError: with the library's words, when it is no PromQL.
        PlacesLostError: when its nodes cannot be placed.
    """
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        raise PlacesLostError(text)
    tree = library.parse(text)
    tokens, bad = tokenize(text)
    if bad is not None:
        raise PlacesLostError(text)
    walk = _Walk(text, tokens)
    try:
        node = walk.expression(tree)
    except RecursionError as error:  # hundreds of operators in a row
        raise PlacesLostError(text) from error
    if walk.at != len(tokens):
        raise PlacesLostError(text)
    return node


class _Walk:
    """Takes tokens off while it goes down the library's tree."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *texts: str) -> Token:
        token = self.peek()
        if token is None or (texts and token.text.lower() not in texts):
            raise PlacesLostError(self.text)
        self.at += 1
        return token

    def skip(self, *texts: str) -> bool:
        token = self.peek()
        if token is not None and token.text.lower() in texts:
            self.at += 1
            return True
        return False

    def expression(self, tree: library.Expr) -> Node:
        if isinstance(tree, library.BinaryExpr):
            return self.binary(tree)
        if isinstance(tree, library.ParenExpr):
            start = self.take("(").start
            inner = self.expression(tree.expr)
            return Group(start, self.take(")").end, inner)
        if isinstance(tree, library.UnaryExpr):
            start = self.take("-", "+").start
            inner = self.expression(tree.expr)
            return Group(start, inner.end, inner)
        if isinstance(tree, library.Call):
            return self.call(tree)
        if isinstance(tree, library.AggregateExpr):
            return self.aggregate(tree)
        if isinstance(tree, library.SubqueryExpr):
            inner = self.expression(tree.expr)
            self.take("[")
            while self.take().text != "]":
                pass
            end = self.modifiers(self.tokens[self.at - 1].end)
            return Subquery(inner.start, end, inner, _seconds(tree.range))
        if isinstance(tree, library.NumberLiteral):
            sign = self.peek()
            while self.skip("-", "+"):
                pass
            token = self.take()
            return Number(token.start if sign is None else sign.start, token.end, tree.val)
        if isinstance(tree, library.StringLiteral):
            token = self.take()
            return Text(token.start, token.end, tree.val)
        if isinstance(tree, library.MatrixSelector):
            return self.selector(tree.vector_selector, _seconds(tree.range))
        if isinstance(tree, library.VectorSelector):
            return self.selector(tree, None)
        raise PlacesLostError(self.text)

    def selector(self, tree: library.VectorSelector, range_s: float | None) -> Selector:
        first = self.take()
        name_start, name_end = first.start, first.end
        labels: list[str] = []
        metric = tree.name
        if first.text == "{" or self.skip("{"):
            while (token := self.take()).text != "}":
                following = self.peek()
                if following is not None and following.text in ("=", "!=", "=~", "!~"):
                    labels.append(token.text)
                    self.take()
                    value = self.take()
                    if token.text == "__name__" and following.text == "=":
                        metric = value.text[1:-1]
                        name_start, name_end = value.start + 1, value.end - 1
                elif token.kind == "string":  # the quoted name of UTF-8 metrics
                    metric, name_start, name_end = token.text[1:-1], token.start + 1, token.end - 1
        range_start = range_end = name_end
        if range_s is not None:
            range_start = self.take("[").end
            while (token := self.take()).text != "]":
                pass
            range_end = token.start
        end = self.modifiers(self.tokens[self.at - 1].end)
        return Selector(
            first.start,
            end,
            metric,
            name_start,
            name_end,
            tuple(labels),
            range_s,
            range_start,
            range_end,
        )

    def modifiers(self, end: int) -> int:
        """Skip `offset` and `@` behind a selector or subquery."""
        while True:
            if self.skip("offset"):
                self.skip("-")
                end = self.take().end
            elif self.skip("@"):
                self.skip("-")
                end = self.take().end
                if self.skip("("):
                    end = self.take(")").end
            else:
                return end

    def call(self, tree: library.Call) -> Call:
        first = self.take()
        self.take("(")
        arguments = []
        for argument in tree.args:
            arguments.append(self.expression(argument))
            self.skip(",")
        return Call(first.start, self.take(")").end, tree.func.name, tuple(arguments))

    def aggregate(self, tree: library.AggregateExpr) -> Aggregate:
        first = self.take()
        by = without = None
        by, without = self.grouping(by, without)
        self.take("(")
        parameter = None
        if tree.param is not None:
            parameter = self.expression(tree.param)
            self.take(",")
        inner = self.expression(tree.expr)
        self.skip(",")
        end = self.take(")").end
        before = self.at
        by, without = self.grouping(by, without)
        if self.at != before:
            end = self.tokens[self.at - 1].end
        return Aggregate(first.start, end, first.text.lower(), by, without, parameter, inner)

    def grouping(
        self, by: tuple[str, ...] | None, without: tuple[str, ...] | None
    ) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
        token = self.peek()
        if token is None or token.text.lower() not in ("by", "without"):
            return by, without
        self.take()
        labels = self.label_list()
        return (labels, without) if token.text.lower() == "by" else (by, labels)

    def label_list(self) -> tuple[str, ...]:
        self.take("(")
        labels = []
        while (token := self.take()).text != ")":
            if token.text != ",":
                labels.append(token.text.strip("\"'"))
        return tuple(labels)

    def binary(self, tree: library.BinaryExpr) -> Binary:
        left = self.expression(tree.lhs)
        operator = self.take()
        self.skip("bool")
        while self.skip("on", "ignoring", "group_left", "group_right"):
            token = self.peek()
            if token is not None and token.text == "(":
                self.label_list()
        right = self.expression(tree.rhs)
        return Binary(left.start, right.end, operator.text.lower(), left, right)


def _seconds(duration: timedelta | None) -> float:
    return 0.0 if duration is None else duration.total_seconds()
