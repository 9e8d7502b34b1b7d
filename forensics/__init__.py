"""Why a vLLM server became slow, proven line by line, and how large its batch may be.

Names are handed out lazily, so that importing a lower layer never pulls in an upper one.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["Analysis", "Options", "__version__", "analyze"]

_HOMES = {
    "Analysis": "forensics.analysis",
    "Options": "forensics.config",
    "analyze": "forensics.pipeline",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the lazily imported name has its own type
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forensics' has no attribute {name!r}")
