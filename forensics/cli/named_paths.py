"""Paths as arguments: an empty one, say of an unset variable, is not the present folder."""

from pathlib import Path

from forensics.errors import UsageError


def named_path(text: str) -> Path:
    """Return the path that an argument names.

    Raises:
        UsageError: it names none.
    """
    if not text.strip():
        raise UsageError("an empty path names nothing; is a variable unset?")
    return Path(text)
