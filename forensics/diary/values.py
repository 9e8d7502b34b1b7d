"""Stated values → numbers and words; what is no number is not observed."""

from collections.abc import Mapping

from forensics.diary.records import Stated
from forensics.evidence import LARGEST_VALUE


def under(stated: Mapping[str, Stated], prefix: str) -> dict[str, Stated]:
    """Give the facts below a prefix, by the rest of their key."""
    return {
        key[len(prefix) :]: item for key, item in sorted(stated.items()) if key.startswith(prefix)
    }


def first(left: Mapping[str, Stated], right: Mapping[str, Stated], key: str) -> Stated | None:
    """Give a key from the first of two tables that has it."""
    return left.get(key) or right.get(key)


def real(item: Stated | None) -> float | None:
    """Read a number; thousands separators are allowed."""
    try:
        value = float(item.value.replace(",", "")) if item else None
    except ValueError:
        return None
    return value if value is not None and abs(value) <= LARGEST_VALUE else None


def whole(item: Stated | None) -> int | None:
    """Read a whole number."""
    value = real(item)
    return int(value) if value is not None and value == int(value) else None


def text(item: Stated | None) -> str | None:
    """Read a word; Python's None and nothing at all are nothing."""
    return item.value if item is not None and item.value not in ("", "None") else None
