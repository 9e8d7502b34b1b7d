"""Which part of a latency grew: the parts of a request's time in two windows, held side by side.

Queue time ends at the first scheduling, prefill at the first token, decode at the last; what a
preempted request waits again lies in its decode time (observed.md 10). The histograms book a
request when it ends, the time to first token when that token comes.
"""

from forensics.attribution.figures import Figures

PARTS = ("queue", "prefill", "decode")
OUTSIDE = "outside"
"""The time to first token grew by something that is neither queue nor prefill."""
# Of the growth of the time to first token, what queue and prefill must explain together (guess).
_MOST = 0.5
# Of the time a request took before, what a part must have grown by to be named (guess).
_LEAST = 0.1


def grown_part(before: Figures | None, after: Figures) -> str | None:
    """Name the part of the requests' time that grew most; None when none grew much or was seen."""
    if before is None:
        return None
    whole = (before.queue_s or 0.0) + (before.prefill_s or 0.0) + (before.decode_s or 0.0)
    grown = {name: _growth(before, after, f"{name}_s") for name in PARTS}
    known = {n: value for n, value in grown.items() if value is not None and value > _LEAST * whole}
    return max(known, key=lambda name: known[name]) if known else None


def behind_ttft(before: Figures | None, after: Figures) -> str | None:
    """Name what made the time to first token grow: queue, prefill, or what is outside both."""
    whole = _growth(before, after, "ttft_s")
    queue, prefill = _growth(before, after, "queue_s"), _growth(before, after, "prefill_s")
    if whole is None or queue is None or prefill is None:
        return None
    if queue + prefill < _MOST * whole:
        return OUTSIDE
    return "queue" if queue >= prefill else "prefill"


def _growth(before: Figures | None, after: Figures, name: str) -> float | None:
    old = getattr(before, name) if before is not None else None
    new = getattr(after, name)
    return None if old is None or new is None else float(new - old)
