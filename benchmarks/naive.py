"""Two trivial ways to diagnose a fall of the hit rate, and one rule for one cause, to compare with.

All are given the same detected fall as the product; without one they say "healthy".
"""

import math

from benchmarks.incident_set import Incident, main_fall
from forensics.attribution import Figures, figures
from forensics.attribution.physics import exhausted
from forensics.verdict import HEALTHY

# Metric -> the cause its change is taken for.
_MEANS = {
    "preemptions_per_min": "preemption-cliff",
    "usage": "preemption-cliff",
    "residence_s": "eviction-pressure",
    "running": "eviction-pressure",
    "prompt_len": "prefix-diversity-loss",
    "hit_per_request": "prefix-diversity-loss",
    "queries_per_prompt_token": "counting-artifact",
}
# Below this a value counts as this, so that a change from zero is large and not infinite.
_FLOOR = {"preemptions_per_min": 0.1, "usage": 0.01, "residence_s": 1.0, "running": 0.5}


def _windows(case: Incident) -> tuple[Figures, Figures] | None:
    fall = main_fall(case)
    if fall is None:
        return None
    timeline, episode = fall
    pool = timeline.diary.at(episode.onset[1]).pool.tokens
    tokens = float(pool) if pool else None
    return (
        figures(timeline, episode.baseline, tokens),
        figures(timeline, episode.after, tokens),
    )


def largest_change(case: Incident) -> str:
    """Name what the metric with the largest relative change is taken for."""
    windows = _windows(case)
    if windows is None:
        return HEALTHY
    changes: dict[str, float] = {}
    for name in _MEANS:
        before, after = (getattr(window, name) for window in windows)
        if before is None or after is None:
            continue
        floor = _FLOOR.get(name, 1e-3)
        changes[name] = abs(math.log(max(after, floor) / max(before, floor)))
    if not changes:
        return HEALTHY
    return _MEANS[max(changes, key=lambda name: (changes[name], name))]


def preemptions_then_residence(case: Incident) -> str:
    """Preemptions: cliff; else usage rose or residence fell: eviction; else diversity."""
    windows = _windows(case)
    if windows is None:
        return HEALTHY
    before, after = windows
    if (after.preemptions or 0.0) > 0:
        return "preemption-cliff"
    rose = before.usage is not None and after.usage is not None and after.usage > before.usage
    fell = (
        before.residence_s is not None
        and after.residence_s is not None
        and after.residence_s < before.residence_s
    )
    return "eviction-pressure" if rose or fell else "prefix-diversity-loss"


def exhausted_and_lost(case: Incident) -> bool:
    """Tell whether the best single rule known calls the preemption regime the cause.

    At least 0.01 preemptions per request, a full pool in a quarter of the samples, and hit tokens
    per request below 0.8 of what they were (diagnosis.md, sections 2 and 3.4).
    """
    windows = _windows(case)
    if windows is None:
        return False
    before, after = windows
    if before.hit_per_request is None or after.hit_per_request is None:
        return False
    return exhausted(after) and after.hit_per_request < 0.8 * before.hit_per_request
