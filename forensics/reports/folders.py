"""Long paths → short ones for people: the folder that all files share is said once.

JSON keeps the paths as the operator named them; a page or a terminal has no room for the same forty
characters on every line of evidence.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from forensics.analysis import Analysis, Track

T = TypeVar("T")

# Shorter folders do not hurt; taking them away would only make a reader look for them.
_WORTH_SHORTENING = 16


def shared_folder(analysis: Analysis) -> str:
    """Give the folder all files lie in, ending in a slash; "" when there is little to gain."""
    paths = [view.path for view in analysis.files if "/" in view.path]
    if not paths or len(paths) < len(analysis.files):
        return ""
    parts = [path.split("/")[:-1] for path in paths]
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    folder = "/".join(shared) + "/" if shared else ""
    return folder if len(folder) >= _WORTH_SHORTENING else ""


def without_folder(analysis: Analysis) -> Analysis:
    """Take the shared folder out of every place, so that ``server.log:1204`` is left."""
    folder = shared_folder(analysis)
    if not folder:
        return analysis
    return replace(_stripped(analysis, folder), reproduce=analysis.reproduce)


def _stripped(value: T, folder: str) -> T:
    if isinstance(value, str):
        return cast(T, value.replace(folder, ""))
    if isinstance(value, tuple):
        return cast(T, tuple(_stripped(item, folder) for item in value))
    if isinstance(value, Mapping):
        return cast(T, {key: _stripped(item, folder) for key, item in value.items()})
    if is_dataclass(value) and not isinstance(value, type | Track):
        changed = {
            item.name: _stripped(getattr(value, item.name), folder) for item in fields(value)
        }
        return cast(T, replace(value, **changed))
    return value
