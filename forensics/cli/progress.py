"""Progress of long reads: one line on a terminal's stderr, rewritten in place."""

import shutil
import sys
import time
from types import TracebackType

_EVERY_S = 0.1
_QUIET_S = 0.7


class Progress:
    """Shows what is being read; silent for the first moment, so that short runs print nothing."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._began = time.monotonic()
        self._last = 0.0
        self._shown = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def report(self, path: str, done: int, total: int) -> None:
        """Show how far a source has been read, bytes."""
        now = time.monotonic()
        if not self._enabled or now - self._began < _QUIET_S or now - self._last < _EVERY_S:
            return
        self._last, self._shown = now, True
        share = f" {done * 100 // total} %" if total else ""
        width = shutil.get_terminal_size((80, 24)).columns - 1
        clean = "".join(char if char.isprintable() else "?" for char in path)
        text = f"reading {clean}: {done / 1e6:,.0f} MB{share}"
        sys.stderr.write("\r\x1b[K" + text[:width])
        sys.stderr.flush()
