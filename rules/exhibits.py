"""Figures → exhibits: each with its unit, both windows, and the place where it was read."""

from collections.abc import Callable
from dataclasses import replace

from forensics.catalog.messages import Message
from forensics.timeline import EngineTimeline
from rules.interface import Case, Exhibit

Sides = tuple[tuple[Exhibit, ...], tuple[Exhibit, ...]]

# A figure within this factor of what it was is unchanged (diagnosis.md 3.5: prompts longer by a
# quarter are other traffic).
_ALIKE = 1.25
# Above it the pool has no room to speak of (the least usage that goes with preemption in logs).
_ROOM = 0.9

# Unit by figure; figures are attributes of forensics.attribution.Figures.
_UNITS: dict[str, tuple[str, str]] = {
    "hit_rate": ("hit_rate", "ratio"),
    "counter_rate": ("counter_hit_rate", "ratio"),
    "queries_per_prompt_token": ("queries_per_prompt_token", "tokens per token"),
    "hit_per_request": ("hit_rate", "tokens per request"),
    "miss_per_request": ("hit_rate", "tokens per request"),
    "prompt_len": ("prompt_tokens", "tokens per request"),
    "output_len": ("generation_tokens", "tokens per request"),
    "usage": ("kv_usage", "ratio"),
    "usage_max": ("kv_usage", "ratio"),
    "saturated": ("kv_usage", "share of samples at 0.97 or more"),
    "usage_per_running": ("kv_usage", "share of the pool per running request"),
    "running": ("running", "requests"),
    "running_max": ("running", "requests"),
    "waiting": ("waiting", "requests"),
    "waiting_max": ("waiting", "requests"),
    "waiting_deferred": ("waiting_deferred", "requests"),
    "swapped_max": ("swapped", "requests"),
    "preemptions": ("preemptions", "preemptions"),
    "preemptions_per_request": ("preemptions", "per finished request"),
    "preemptions_per_min": ("preemptions", "per minute"),
    "residence_s": ("residence_s", "s"),
    "written_tokens": ("generation_tokens", "tokens"),
    "requests_per_s": ("requests_per_s", "requests/s"),
    "prompt_tps": ("prompt_tps", "tokens/s"),
    "generation_tps": ("generation_tps", "tokens/s"),
    "ttft_s": ("ttft_s", "s"),
    "e2e_s": ("e2e_s", "s"),
    "queue_s": ("queue_s", "s"),
    "prefill_s": ("prefill_s", "s"),
    "decode_s": ("decode_s", "s"),
    "itl_s": ("itl_s", "s"),
    "aborted": ("aborted", "requests"),
    "rejected": ("rejected", "requests"),
    "block_idle_s": ("block_idle_s", "s"),
    "block_reuse_s": ("block_reuse_s", "s"),
}


def compare(case: Case, *names: str, note: Message | None = None) -> tuple[Exhibit, ...]:
    """Show figures of the case's two windows; those observed in neither are left out.

    Args:
        case: the case.
        names: attributes of Figures.
        note: what the figures mean for the cause.
    """
    shown: list[Exhibit] = []
    for name in names:
        signal, unit = _UNITS[name]
        before = getattr(case.before, name) if case.before is not None else None
        after = getattr(case.after, name)
        if before is None and after is None:
            continue
        place = case.timeline.place(_read_from(case.timeline, signal), _shown_at(case))
        shown.append(Exhibit(name, before, after, unit, place, note))
    return tuple(shown)


def sides(
    case: Case, names: tuple[str, ...], holds: Callable[[Exhibit], bool], note: Message
) -> Sides:
    """Show figures on the side they speak for: (what the note is true of, what it is not).

    Args:
        case: the case.
        names: attributes of Figures.
        holds: whether the note is true of an exhibit.
        note: what the figures then mean for the cause; the others go without.
    """
    shown = compare(case, *names, note=note)
    speaking = tuple(item for item in shown if holds(item))
    return speaking, tuple(replace(item, note=None) for item in shown if item not in speaking)


def alike(old: float, new: float) -> bool:
    """Tell whether a figure, not zero before, stayed within a quarter of what it was."""
    return 1 / _ALIKE < new / old < _ALIKE


def is_alike(item: Exhibit) -> bool:
    """Tell whether an exhibit's figure is `alike` before and after."""
    old, new = item.before, item.after
    if not isinstance(old, float) or not isinstance(new, float) or old == 0.0:
        return old == new
    return alike(old, new)


def has_risen(item: Exhibit) -> bool:
    """Tell whether a figure was seen before and after, and is larger by a quarter."""
    old, new = item.before, item.after
    return isinstance(old, float) and isinstance(new, float) and new >= old * _ALIKE > 0.0


def has_room(item: Exhibit) -> bool:
    """Tell whether a usage leaves room in the pool."""
    return isinstance(item.after, float) and item.after < _ROOM


def stated(signal: str, value: float | str, unit: str, case: Case, fact: str) -> Exhibit:
    """Show something the diary states: a setting or the pool, with its own place."""
    epoch = case.epoch
    known = epoch.flags.get(fact) or epoch.config.get(fact) or epoch.memory.get(fact)
    place = known.place if known is not None else None
    if fact == "pool":
        place = epoch.pool.place
    if fact == "prefix_caching" and epoch.prefix_caching_stated is not None:
        place = epoch.prefix_caching_stated.place
    return Exhibit(signal, None, value, unit, place)


def _read_from(timeline: EngineTimeline, signal: str) -> str:
    """Give the observed signal behind a figure: proven preemptions stand in for counted ones."""
    if signal == "preemptions" and signal not in timeline.origins:
        return "preemption_lower_bound"
    return signal


def _shown_at(case: Case) -> float:
    return case.episode.onset[1] if case.episode is not None else case.window[1]
