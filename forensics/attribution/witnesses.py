"""The witnesses that tell lost capacity from lost sharing, as scale-free figures.

Each has the sign that physics gives it (`weights.toml` holds the weights, `docs/attribution.md` the
reasons). A falling residence time is no witness: lost hits are recomputed, and recomputation alone
turns the pool over faster (diagnosis.md, "What cannot be separated").
"""

import math
from dataclasses import dataclass

import numpy as np

from forensics.attribution.figures import Figures
from forensics.attribution.onset import Shape
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline, Histogram

# Shares of the mean prompt length below which a request counts as nearly all hit.
_SMALL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Reading:
    """One witness before it is weighed: its figure, and what was read before and after."""

    value: float
    before: float | None = None
    after: float | None = None


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
        timeline / episode: the engine and the fall.
        before / after: figures of the episode's two windows.
        course: how the fall came about.
        pool_tokens: size of the pool in tokens, None when unknown.

    Returns:
        Readings by name; a witness that was not observed is left out.
    """
    found: dict[str, Reading | None] = {
        "prompt_length_change": _change(before.prompt_len, after.prompt_len, absolute=True),
        "request_rate": _change(before.requests_per_s, after.requests_per_s),
        "hit_tokens_per_request": _change(before.hit_per_request, after.hit_per_request),
        "queue": _queue(before, after),
        "live_requests": _change(_live(before), _live(after)),
        "level_near_zero": Reading(_near_zero(episode, after), episode.before, episode.level),
        "reuse_gap_over_idle": _change(after.block_idle_s, after.block_reuse_s),
        "prompt_length_mix": _mix(timeline.histograms.get("prompt_len"), episode),
    }
    if course is not None:
        found["sharp_onset"] = Reading(course.early)
        found["fall_completed"] = Reading(course.first_half)
        if course.turnover is not None:
            found["pool_turnover"] = Reading(math.log(course.turnover + 0.05))
    foot_before = footprint(before, pool_tokens)
    foot_after = footprint(after, pool_tokens)
    if foot_after is not None:
        found["unshared_footprint"] = Reading(foot_after, foot_before, foot_after)
    found["footprint_change"] = _change(foot_before, foot_after)
    computed = timeline.histograms.get("computed_len")
    if computed is not None:
        found["computed_spread"] = _spread(computed, episode)
        found["nearly_all_hit"] = _small(computed, episode, before.prompt_len)
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


def _change(before: float | None, after: float | None, absolute: bool = False) -> Reading | None:
    if before is None or after is None or before <= 0:
        return None
    value = math.log(max(after, 1e-3 * before) / before)
    return Reading(abs(value) if absolute else value, before, after)


def _queue(before: Figures, after: Figures) -> Reading | None:
    if after.waiting is None:
        return None
    return Reading(math.log1p(after.waiting), before.waiting, after.waiting)


def _live(figures: Figures) -> float | None:
    if figures.running is None:
        return None
    return figures.running + (figures.waiting or 0.0)


def _near_zero(episode: Episode, after: Figures) -> float:
    """Give 1 when hits vanished while several requests ran and the pool had room, falling to 0 at 5 %.

    Requests that run together always find what they share, whatever was evicted; so hits at zero
    mean that they share nothing. An exhausted pool hides this, and so does a single running request.
    """
    if (after.saturated or 0.0) >= 0.25 or (after.running or 0.0) < 2.0:
        return 0.0
    return float(np.clip(1.0 - episode.level / 0.05, 0.0, 1.0))


def _shares(histogram: Histogram, span: Span) -> np.ndarray | None:
    counts = histogram.over(span.start, span.end)
    total = float(counts[-1])
    return counts / total if total > 0 else None


def _mix(histogram: Histogram | None, episode: Episode) -> Reading | None:
    """Give the largest difference of the two cumulative distributions of the prompt length."""
    if histogram is None:
        return None
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None:
        return None
    return Reading(float(np.abs(before - after).max()))


def _spread(histogram: Histogram, episode: Episode) -> Reading | None:
    """Give the change of the entropy of computed tokens per request, in nats.

    Where everyone misses alike, all requests compute the same; eviction spares some and not others.
    """
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None:
        return None
    low, high = _entropy(before), _entropy(after)
    return Reading(high - low, low, high)


def _entropy(cumulative: np.ndarray) -> float:
    share = np.diff(cumulative, prepend=0.0)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def _small(histogram: Histogram, episode: Episode, prompt_len: float | None) -> Reading | None:
    """Give the share of requests that still compute next to nothing: they found what they sought."""
    before = _shares(histogram, episode.baseline)
    after = _shares(histogram, episode.after)
    if before is None or after is None or not prompt_len:
        return None
    edges = np.concatenate(([0.0], histogram.edges[:-1]))
    limit = _SMALL_SHARE * prompt_len
    old = float(np.interp(limit, edges, np.concatenate(([0.0], before[:-1]))))
    new = float(np.interp(limit, edges, np.concatenate(([0.0], after[:-1]))))
    return Reading(new, old, new)
