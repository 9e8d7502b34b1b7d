"""The witnesses that tell lost capacity from lost sharing, as scale-free figures.

Each has the sign that physics gives it (`weights.toml` holds the weights, `docs/attribution.md` the
reasons). A falling residence time is no witness: lost hits are recomputed, and recomputation alone
turns the pool over faster (diagnosis.md, "What cannot be separated").
"""

import math

import numpy as np
import polars as pl

from forensics.attribution.figures import Figures
from forensics.attribution.histogram_witnesses import (
    computed_spread,
    gap_over_idle,
    length_mix,
    nearly_all_hit,
)
from forensics.attribution.load import Rise, load_rise
from forensics.attribution.onset import Shape
from forensics.attribution.physics import exhausted
from forensics.attribution.readings import Reading
from forensics.episodes import Episode
from forensics.timeline import EngineTimeline

# Prompt lengths within e^0.3 count as alike: sessions that were cut short or grew by a turn.
_ALIKE = 0.3
# Usage at which hits broke in real exhaustions: 0.64-0.97 (observed.md 1).
_FILLING = 0.6
# Running requests that share less than this share nothing to speak of.
_SHARES = 0.1
_LEAST_POINTS = 8
# Below this usage the pool has room, above it only running requests keep their blocks. Guess.
_ROOM = 0.9
_ENOUGH_FOR_ZERO = 60.0
# Of falls after hits had held through a turnover, those by changed prompts reach 0.7 and more of
# their depth in the first intervals in nine of ten, evictions in a quarter (modelled and labelled).
_CREEPING = 0.3


def readings(
    timeline: EngineTimeline,
    episode: Episode,
    before: Figures,
    after: Figures,
    course: Shape | None,
    pool_tokens: float | None,
) -> dict[str, Reading]:
    """Read every witness that was observed.

    Args:
        timeline: the engine.
        episode: the fall.
        before: figures of its baseline.
        after: figures of its low time.
        course: how the fall came about.
        pool_tokens: size of the pool in tokens, None when unknown.

    Returns:
        Readings by name; a witness that was not observed is left out.
    """
    found: dict[str, Reading | None] = {
        "prompts_longer": _one_way(before.prompt_len, after.prompt_len, 1.0),
        "prompts_shorter": _one_way(before.prompt_len, after.prompt_len, -1.0),
        "hit_tokens_per_request": _change(before.hit_per_request, after.hit_per_request),
        "exhausted_by_like_requests": _exhausted(before, after, course),
        "rate_follows_residence": _follows(timeline, episode),
        "level_near_zero": _near_zero(timeline, episode),
        "reuse_gap_over_idle": gap_over_idle(timeline, episode.after),
        "prompt_length_mix": length_mix(timeline.histograms.get("prompt_len"), episode),
    }
    if course is not None:
        found["sharp_onset"] = Reading(course.early)
        found["fall_completed"] = Reading(course.first_half)
        if course.turnover is not None:
            found["pool_turnover"] = Reading(math.log(course.turnover + 0.05))
        found |= _load(load_rise(timeline, episode, course, pool_tokens), course)
    found |= _sharing(episode, footprint(before, pool_tokens), footprint(after, pool_tokens))
    computed = timeline.histograms.get("computed_len")
    if computed is not None:
        found["computed_spread"] = computed_spread(computed, episode)
        found["nearly_all_hit"] = nearly_all_hit(computed, episode, before.prompt_len)
    return {name: reading for name, reading in found.items() if reading is not None}


def footprint(figures: Figures, pool_tokens: float | None) -> float | None:
    """Give the pool tokens per running request over its own tokens; below 1 it shares with others.

    A request seen at a random moment holds its prompt and, on average, half of its output.
    """
    parts = (figures.usage_per_running, figures.prompt_len, pool_tokens)
    if any(part is None for part in parts):
        return None
    per_running, prompt, pool = (float(part or 0.0) for part in parts)
    own = prompt + 0.5 * (figures.output_len or 0.0)
    return per_running * pool / own if own > 0 else None


def _load(rise: Rise | None, course: Shape) -> dict[str, Reading | None]:
    """Read whether load rose first, and whether hits held meanwhile and then crept down.

    What breaks at once after it held is no eviction that had gone on and counts for nothing, unless
    the pool turns over too fast to tell.
    """
    if rise is None:
        return {}
    # One request more on both sides, so that an idle server does not make it infinite.
    ratio = math.log((1.0 + rise.after) / (1.0 + rise.before))
    found: dict[str, Reading | None] = {"load_rise": Reading(ratio, rise.before, rise.after)}
    if rise.held is not None:
        crept = max(course.early_turnover or 0.0, (1.0 - course.early) / _CREEPING)
        found["hits_held"] = Reading(min(1.0, crept) * min(1.0, rise.held))
    return found


def _change(before: float | None, after: float | None) -> Reading | None:
    if before is None or after is None or before <= 0:
        return None
    return Reading(math.log(max(after, 1e-3 * before) / before), before, after)


def _one_way(before: float | None, after: float | None, sign: float) -> Reading | None:
    """Give the log ratio in one direction, 0 in the other."""
    change = _change(before, after)
    return None if change is None else Reading(max(0.0, sign * change.value), before, after)


def _exhausted(before: Figures, after: Figures, course: Shape | None) -> Reading | None:
    """Give 1 where the pool filled up as hits broke, with prompts of the old length, else 0.

    Running requests that fill the pool leave nothing idle in it, so what idle blocks served is lost
    to capacity. Prompts of another length would mean other traffic as well; hits that broke while
    the pool was nearly empty had another reason than the exhaustion that came later. Preemptions
    tell a full pool where usage was not watched.
    """
    if after.preemptions_per_request is None or course is None:
        return None
    if not before.prompt_len or not after.prompt_len:
        return None
    alike = abs(math.log(after.prompt_len / before.prompt_len)) < _ALIKE
    filling = course.usage is None or course.usage >= _FILLING
    return Reading(float(exhausted(after) and alike and filling), before.saturated, after.saturated)


def _follows(timeline: EngineTimeline, episode: Episode) -> Reading | None:
    """Give the correlation of hit rate and log residence time within the low time.

    Where blocks survive too short, longer survival brings hits; where prompts share nothing, not.
    (Hits themselves lengthen survival a little, so a weak correlation is normal.)
    """
    rows = (
        timeline.within(episode.onset[1], episode.after.end)
        .select("hit_rate", "residence_s")
        .drop_nulls()
    )
    if rows.height < _LEAST_POINTS:
        return None
    rate = rows["hit_rate"].to_numpy()
    residence = np.log(rows["residence_s"].to_numpy() + 0.1)
    if float(rate.std()) < 1e-6 or float(residence.std()) < 1e-6:
        return None
    return Reading(float(np.corrcoef(rate, residence)[0, 1]))


def _sharing(
    episode: Episode, before: float | None, after: float | None
) -> dict[str, Reading | None]:
    """Read what running requests share: such prefixes are pinned, eviction cannot take them."""
    if before is None or after is None:
        return {}
    pinned = max(0.0, 1.0 - before)
    idle = min(1.0, max(0.0, episode.before - pinned))
    found: dict[str, Reading | None] = {
        "idle_hits": Reading(idle / episode.before if episode.before > 0 else 0.0),
        "loss_beyond_idle": Reading(max(0.0, episode.before - episode.level - idle)),
    }
    if pinned >= _SHARES:
        found["unshared_footprint"] = Reading(after, before, after)
    return found


def _near_zero(timeline: EngineTimeline, episode: Episode) -> Reading | None:
    """Give 1 when hits vanished while requests ran side by side with room in the pool, 0 from 5 %.

    An eviction queue keeps what was used last, so some reuse survives it in any but a strictly
    cyclic order; hits at zero mean that nothing is shared. An exhausted pool hides this, and too
    few requests cannot show it (no hit in n: below 3/n with 95 % confidence).
    """
    names = [name for name in ("first_tokens", "finished") if timeline.has(name)]
    if not names or not timeline.has("kv_usage"):
        return None
    rows = (
        timeline.within(episode.onset[1], episode.after.end)
        .filter((pl.col("kv_usage") < _ROOM) & (pl.col("running") >= 2.0))
        .select("hit_rate", "hit_weight", names[0])
        .drop_nulls()
    )
    total = float(rows["hit_weight"].sum())
    if total <= 0 or float(rows[names[0]].sum()) < _ENOUGH_FOR_ZERO:
        return None
    level = float((rows["hit_rate"] * rows["hit_weight"]).sum()) / total
    return Reading(float(np.clip(1.0 - level / 0.05, 0.0, 1.0)), episode.before, level)
