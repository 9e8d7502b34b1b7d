"""The counting part of a fall: how much of it the counters made, not the cache."""

from forensics.attribution.figures import Figures
from forensics.attribution.records import Part
from forensics.diary import Epoch
from forensics.episodes import Episode
from forensics.timeline import EngineTimeline

# Lookups per prompt token above which the counters are no hit rate (diagnosis.md, section 0).
INFLATED = 1.2
_DEFAULT_BLOCK = 16


def counting_part(
    timeline: EngineTimeline, episode: Episode, before: Figures, after: Figures
) -> Part:
    """Bound what of a fall is not in the cache.

    With tokens by source the fall is already the true one, unless the episode is one of the raw
    counters: then the difference of the two falls is counting, exactly. Without, lookups beyond the
    prompt tokens came from requests looked up again and again, and whether those were hits is not
    known: each window's true rate lies between "all of them" and "none of them".

    Args:
        timeline: the engine.
        episode: the fall.
        before: figures of its baseline.
        after: figures of its low time.
    """
    fall = episode.before - episode.level
    raw = episode.signal == "counter_hit_rate" and _by_source(timeline)
    if raw and before.hit_rate is not None and after.hit_rate is not None:
        value = _clip(fall - (before.hit_rate - after.hit_rate), fall)
        return Part("counting", value, value, value)
    if episode.signal == "hit_rate" and _by_source(timeline):
        return Part("counting", 0.0, 0.0, 0.0)
    unit = _unit_change(timeline, episode, before)
    low_before, high_before = _bounds(episode.before, before.queries_per_prompt_token)
    low_after, high_after = _bounds(episode.level, after.queries_per_prompt_token)
    least, most = low_before - high_after, high_before - low_after
    value = fall - ((low_before + high_before) / 2 - (low_after + high_after) / 2)
    return Part(
        "counting",
        _clip(value + unit, fall),
        _clip(fall - most + unit, fall),
        _clip(fall - least + unit, fall),
    )


def _by_source(timeline: EngineTimeline) -> bool:
    origin = timeline.origins.get("hit_rate")
    return origin is not None and timeline.has("cached_tokens")


def _bounds(rate: float, lookups_per_token: float | None) -> tuple[float, float]:
    """Give the least and the greatest true rate behind a counted one."""
    if lookups_per_token is None or lookups_per_token <= INFLATED:
        return rate, rate
    hits, excess = rate * lookups_per_token, lookups_per_token - 1.0
    return min(1.0, max(0.0, hits - excess)), min(1.0, hits)


def _unit_change(timeline: EngineTimeline, episode: Episode, before: Figures) -> float:
    """Estimate the step that 0.9.0 makes by counting tokens instead of full blocks.

    The tail of each prompt, half a block on average, came into the denominator.
    """
    old: Epoch = timeline.diary.at(episode.baseline.end)
    new: Epoch = timeline.diary.at(episode.after.end)
    if old.before(0, 9) is not True or new.before(0, 9) is not False or not before.prompt_len:
        return 0.0
    block = old.pool.block_size or _DEFAULT_BLOCK
    return episode.before * min(1.0, 0.5 * block / before.prompt_len)


def _clip(value: float, fall: float) -> float:
    return min(fall, max(0.0, value))
