"""One function over all text of a record: what shortening paths and hiding names have in common."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from forensics.analysis import Track

T = TypeVar("T")


def with_text(value: T, change: Callable[[str], str]) -> T:
    """Apply a function to every text inside a record, however deep; keys of mappings are kept."""
    if isinstance(value, str):
        return cast(T, change(value))
    if isinstance(value, tuple):
        return cast(T, tuple(with_text(item, change) for item in value))
    if isinstance(value, Mapping):
        return cast(T, {key: with_text(item, change) for key, item in value.items()})
    if is_dataclass(value) and not isinstance(value, type | Track):
        changed = {
            item.name: with_text(getattr(value, item.name), change) for item in fields(value)
        }
        return cast(T, replace(value, **changed))
    return value


def texts(value: object) -> list[str]:
    """List every text inside a record, in order."""
    found: list[str] = []

    def seen(text: str) -> str:
        found.append(text)
        return text

    with_text(value, seen)
    return found
