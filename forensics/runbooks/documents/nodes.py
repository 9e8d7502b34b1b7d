"""Structured text (YAML, JSON) as a tree whose strings know where they stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from forensics.runbooks.text import Mapped

Node = Union["Leaf", "Table", "Rows"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar; `text` is its value as text, wherever its characters stand."""

    text: Mapped


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping, in source order."""

    pairs: tuple[tuple[Leaf, Node], ...]

    def get(self, key: str) -> Node | None:
        """Return what stands under a key, or None."""
        return next((value for name, value in self.pairs if name.text.text == key), None)

    def text(self, key: str) -> Mapped | None:
        """Return the scalar under a key, or None."""
        value = self.get(key)
        return value.text if isinstance(value, Leaf) else None


@dataclass(frozen=True, slots=True)
class Rows:
    """A sequence."""

    items: tuple[Node, ...]


def tables(node: Node) -> Iterator[Table]:
    """Yield all mappings in a tree, outer ones first."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Table):
            yield current
            stack.extend(value for _, value in reversed(current.pairs))
        elif isinstance(current, Rows):
            stack.extend(reversed(current.items))


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield all scalars that are values, in source order."""
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, Rows):
        for item in node.items:
            yield from leaves(item)
    else:
        for _, value in node.pairs:
            yield from leaves(value)
