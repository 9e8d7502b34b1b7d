"""Bytes → evidence: what is read, by which format, into which tables; see `parsers.reading`.

Names are handed out lazily: a process that reads a stretch of a log for another one does without
the libraries of tables, which take longer to import than the stretch takes to read.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parsers.interface import Format, Parsed, Progress, ReadOptions, Source
    from parsers.reading import FORMATS, read

__all__ = ["FORMATS", "Format", "Parsed", "Progress", "ReadOptions", "Source", "read"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "reading" if name in ("FORMATS", "read") else "interface"
    return getattr(import_module(f"{__name__}.{home}"), name)
