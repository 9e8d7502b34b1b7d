"""The preemption regime of a window: present, and how clearly.

Thresholds are the label rules of diagnosis.md, section 3: at least 0.01 preemptions per finished
request while the pool is full in at least a quarter of the samples.
"""

from forensics.attribution import Figures

PER_REQUEST = 0.01
SATURATED_SHARE = 0.25


def regime_strength(window: Figures) -> float:
    """Give 0-1: how clearly the preemption regime was present; 0 without any preemption."""
    if not window.preemptions:
        return 0.0
    per_request = window.preemptions_per_request
    often = 1.0 if per_request is None else min(1.0, per_request / PER_REQUEST)
    full = min(1.0, (window.saturated or 0.0) / SATURATED_SHARE)
    return often * full
