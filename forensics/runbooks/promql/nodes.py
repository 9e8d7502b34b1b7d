"""The nodes of a PromQL expression, each with its place in the text, and ways through them."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A stretch of the expression; `start` and `end` are offsets in its text.

    Nodes compare by identity: two alike in different places are different.
    """

    start: int
    end: int

    @property
    def children(self) -> tuple["Node", ...]:
        """The nodes directly below, in source order."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Number(Node):
    """A number."""

    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Text(Node):
    """A string."""

    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Selector(Node):
    """A vector or matrix selector.

    Attributes:
        metric: the name, also where it is given as a `__name__` matcher; None when there is none.
        name_start / name_end: where the name stands.
        labels: label names that are matched.
        range_s: the range in seconds; None for an instant vector.
        range_start / range_end: where it stands, without the brackets.
    """

    metric: str | None
    name_start: int
    name_end: int
    labels: tuple[str, ...]
    range_s: float | None
    range_start: int
    range_end: int


@dataclass(frozen=True, slots=True, eq=False)
class Subquery(Node):
    """An expression evaluated over a range."""

    inner: Node
    range_s: float

    @property
    def children(self) -> tuple[Node, ...]:
        """The expression."""
        return (self.inner,)


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """A function call; the function's name stands from `start` on."""

    function: str
    arguments: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Node):
    """An aggregation.

    Attributes:
        by: the labels kept; None without `by`. `without`: the labels dropped; None without it.
    """

    operator: str
    by: tuple[str, ...] | None
    without: tuple[str, ...] | None
    parameter: Node | None
    inner: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The parameter, if any, and what is aggregated."""
        return (self.inner,) if self.parameter is None else (self.parameter, self.inner)


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    """A binary operation."""

    operator: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """Both sides."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Group(Node):
    """Something in parentheses, or with a sign before it."""

    inner: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """What is inside."""
        return (self.inner,)


COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
RANGE_RATES = frozenset({"rate", "irate", "increase"})
"""Functions that take a counter and mind its resets."""
GAUGE_FUNCTIONS = frozenset({"delta", "idelta", "deriv", "predict_linear"})
"""Functions over a range that take a gauge."""


def nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all below it, parents first, in source order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def selectors(root: Node) -> Iterator[Selector]:
    """Yield the selectors in and below a node."""
    return (node for node in nodes(root) if isinstance(node, Selector))


def bare(node: Node) -> Node:
    """Return what is inside any parentheses."""
    while isinstance(node, Group):
        node = node.inner
    return node
