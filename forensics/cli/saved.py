"""An operand of `compare` and `alerts` → its analysis: saved JSON is read, the rest analysed."""

from collections.abc import Sequence
from pathlib import Path

from forensics.analysis import Analysis
from forensics.config import Options
from forensics.errors import InputError

# The document begins with its schema version; what a server left behind never says so early.
_HEAD_BYTES = 256


def analysis_of(paths: Sequence[Path], options: Options) -> Analysis:
    """Give the analysis of files and folders, or the one saved in a single JSON file.

    Raises:
        InputError: a path is not there or not readable.
    """
    if len(paths) == 1 and is_saved(paths[0]):
        from forensics.reports import json

        try:
            return json.load(paths[0].read_bytes())
        except InputError as error:
            raise InputError(f"{paths[0]}: {error}", str(paths[0])) from error
    from forensics.pipeline import analyze

    return analyze([str(path) for path in paths], options)


def is_saved(path: Path) -> bool:
    """Tell whether a file is a document that `forensics analyze --format json` wrote."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", str(path)) from error
    return head.lstrip().startswith(b"{") and b'"schema_version"' in head
