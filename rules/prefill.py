"""How much of the engine's steps prompts take: what prefill-bound and seat-limit both ask.

A step that computes prompt tokens lasts longer, so every running request gets its next token later.
Where prompts fill the steps, tokens become slow; where admission waits for seats or slots, they do
not.
"""

from forensics.attribution import Figures
from rules.interface import Case

FILLED = 0.5
"""Share of the step budget from which on prefill sets the length of a step (guess)."""
SMALLEST_BUDGET = 2048.0
"""`max_num_batched_tokens` of the GPUs with the smallest default (V1, 0.7 to 0.33)."""
GROWN = 1.5
"""Growth of the time per token or of prefill from which on they count as slowed (guess)."""
MOSTLY_PROMPTS = 8.0
"""Computed prompt tokens per generated one where no latency tells (guess)."""


def computed_tps(seen: Figures) -> float | None:
    """Give prompt tokens computed per second: as counted, from misses, else the whole rate."""
    if seen.computed_tps is not None:
        return seen.computed_tps
    if seen.miss_per_request is not None and seen.requests and seen.seconds > 0:
        return seen.miss_per_request * seen.requests / seen.seconds
    if seen.prompt_tps is None:
        return None
    return seen.prompt_tps * (1.0 - (seen.hit_rate or 0.0))


def per_generated(seen: Figures) -> float | None:
    """Give computed prompt tokens per generated token; infinite when none was generated."""
    computed, generated = computed_tps(seen), seen.generation_tps
    if computed is None or generated is None:
        return None
    return computed / generated if generated > 0 else float("inf")


def per_step(seen: Figures) -> float | None:
    """Give the prompt tokens computed in a step; a step takes one inter-token latency."""
    computed = computed_tps(seen)
    return None if computed is None or seen.itl_s is None else computed * seen.itl_s


def slowed(seen: Case) -> bool | None:
    """Tell whether tokens or prefill take longer than before; None when nothing tells.

    Stats lines carry no latency, but requests running over tokens per second is the time between
    two tokens of one of them.
    """
    pairs = [(_of(seen.before, name), _of(seen.after, name)) for name in ("itl_s", "prefill_s")]
    known = [(old, new) for old, new in pairs if old and new is not None]
    if not known:
        old, new = _token_time(seen.before), _token_time(seen.after)
        known = [(old, new)] if old and new is not None else []
    return any(new >= GROWN * old for old, new in known) if known else None


def prompts_fill_steps(seen: Case) -> bool:
    """Tell whether prompts take the larger part of every step."""
    tokens, ratio = per_step(seen.after), per_generated(seen.after)
    budget = seen.epoch.max_num_batched_tokens
    if tokens is not None and budget:
        return tokens >= FILLED * budget
    if tokens is not None:
        return tokens >= FILLED * SMALLEST_BUDGET and slowed(seen) is True
    return ratio is not None and ratio >= MOSTLY_PROMPTS and slowed(seen) is True


def _of(figures: Figures | None, name: str) -> float | None:
    return getattr(figures, name) if figures is not None else None


def _token_time(figures: Figures | None) -> float | None:
    if figures is None or not figures.running or not figures.generation_tps:
        return None
    return figures.running / figures.generation_tps
