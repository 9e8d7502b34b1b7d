"""Bytes → evidence: what is read, by which format, into which tables; see `parsers.reading`.

Names are handed out lazily: a process that reads a stretch of a log for another one does without
the libraries of tables, which take longer to import than the stretch takes to read.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from parsers.vllm_log import workers

if TYPE_CHECKING:
    from forensics.evidence import Evidence
    from parsers.interface import Format, Parsed, Progress, ReadOptions, Source
    from parsers.reading import FORMATS

__all__ = ["FORMATS", "Format", "Parsed", "Progress", "ReadOptions", "Source", "read"]


def read(
    paths: Sequence[str],
    options: "ReadOptions | None" = None,
    progress: "Progress | None" = None,
) -> "Evidence":
    """Read everything behind the paths; see `parsers.reading.read`.

    A large log is begun to be read while the libraries of tables are imported.
    """
    begun = workers.begin(paths)
    try:
        from parsers import reading

        return reading.read(paths, options, progress or reading.silent, begun)
    finally:
        if begun is not None:
            begun.abandon()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "reading" if name == "FORMATS" else "interface"
    return getattr(import_module(f"{__name__}.{home}"), name)
