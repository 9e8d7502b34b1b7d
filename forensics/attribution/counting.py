"""The counting part of a fall: how much of it the counters made, not the cache."""

from dataclasses import replace

import polars as pl

from forensics.attribution.figures import Figures, figures
from forensics.attribution.records import Part
from forensics.diary import Epoch
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline

# Lookups per prompt token above which the counters are no hit rate (diagnosis.md, section 0).
INFLATED = 1.2
_DEFAULT_BLOCK = 16
# Two definitions of the rate disagree from here on (diagnosis.md, section 0).
_DISAGREE = 0.05
# Scrapes without repeated lookups stand for the window if they carry this share of its prompts.
_QUIET_SHARE = 0.2
# A blocked request that is looked up again hits less than others, not nothing: of the way from the
# counted rate to its upper bound the true one lay at this much at least (14 labelled windows).
_HIDDEN = 0.12
# Share of scrapes that stand for what is least hidden. Guess; in 11 labelled windows without a
# quiet scrape the error of the estimate fell from 0.11 to 0.08.
_LEAST_REPEATED = 0.25
# Part of a window that must be left when requests from before it have ended. Guess.
_SETTLED = 0.5


def as_counted(timeline: EngineTimeline, episode: Episode) -> Episode:
    """Give the fall that the raw counters show, where it is larger than the true one.

    That is the fall people saw; its counting part is then what no request lost.

    Args:
        timeline: the engine.
        episode: a fall of `hit_rate`; returned as it is where counters and tokens agree.
    """
    if episode.signal != "hit_rate" or not _by_source(timeline):
        return episode
    before = figures(timeline, episode.baseline).counter_rate
    after = figures(timeline, episode.after).counter_rate
    if before is None or after is None:
        return episode
    if (before - after) - (episode.before - episode.level) < _DISAGREE:
        return episode
    return replace(episode, signal="counter_hit_rate", before=before, level=after)


def counting_part(
    timeline: EngineTimeline, episode: Episode, before: Figures, after: Figures
) -> Part:
    """Bound what of a fall is not in the cache.

    With tokens by source the fall is already the true one, unless the episode is one of the raw
    counters: then the difference of the two falls is counting, exactly. Without, lookups beyond the
    prompt tokens came from requests looked up again and again, and whether those were hits is not
    known: each window's true rate lies between "all of them" and "none of them", unless finished
    requests tell what they computed. Up to 0.11.0 the lookups of resumed requests are among them,
    and those usually hit their own blocks.

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
    true_before = _true_rate(timeline, episode.baseline, episode.before, before)
    true_after = _true_rate(timeline, episode.after, episode.level, after)
    least, most = true_before.low - true_after.high, true_before.high - true_after.low
    value = fall - (true_before.value - true_after.value)
    return Part(
        "counting",
        _clip(value + unit, fall),
        _clip(fall - most + unit, fall),
        _clip(fall - least + unit, fall),
    )


def _by_source(timeline: EngineTimeline) -> bool:
    origin = timeline.origins.get("hit_rate")
    return origin is not None and timeline.has("cached_tokens")


def _true_rate(timeline: EngineTimeline, span: Span, rate: float, window: Figures) -> Part:
    """Give the least, likely and greatest true rate behind a counted one."""
    lookups = window.queries_per_prompt_token
    if lookups is None:
        return Part("rate", rate, rate, rate)
    epoch = timeline.diary.at(span.end)
    if epoch.before(0, 9) is True:  # counted in blocks
        lookups *= epoch.pool.block_size or _DEFAULT_BLOCK
    hits = rate * lookups
    resumed = min(_resumed(epoch, window), hits, max(0.0, lookups - 1.0))
    if resumed > 0.0:
        # Of the resumed lookups all were hits as a rule, none if their blocks had been taken.
        rate, most = (hits - resumed) / (lookups - resumed), min(1.0, hits / (lookups - resumed))
        hits, lookups = hits - resumed, lookups - resumed
    else:
        most = rate
    if lookups <= INFLATED:
        return Part("rate", rate, rate, most)
    low, high = min(1.0, max(0.0, hits - (lookups - 1.0))), min(1.0, max(hits, most))
    known = _finished_rate(timeline, span, window)
    if known is not None:  # booked later than the counters, but never beyond what they allow
        known = min(high, max(low, known))
        return Part("rate", known, known, known)
    value = _quiet_rate(timeline, span)
    if value is None:
        value = max(rate + _HIDDEN * (high - rate), _least_repeated_rate(timeline, span))
    return Part("rate", min(high, max(low, value)), low, high)


def _resumed(epoch: Epoch, window: Figures) -> float:
    """Give the lookups of resumed requests per prompt token; from 0.11.1 on they are not counted.

    A resumed request looks up its prompt and what it had generated, half of its output on average.
    """
    preempted, prompt = window.preemptions_per_request, window.prompt_len
    if epoch.before(0, 11, 1) is not True or not preempted or not prompt:
        return 0.0
    return preempted * (prompt + 0.5 * (window.output_len or 0.0)) / prompt


def _counted(timeline: EngineTimeline, span: Span) -> pl.DataFrame:
    return (
        timeline.within(span.start, span.end)
        .select("hits", "queries", "prompt_tokens")
        .drop_nulls()
        .filter(pl.col("queries") > 0)
    )


def _finished_rate(timeline: EngineTimeline, span: Span, window: Figures) -> float | None:
    """Give the true rate by the computed tokens of finished requests (0.13+); None if unknown.

    A request is booked when it ends: what ended within one request's time of the window's start had
    begun before it. Without that time at least half of the window must be left.
    """
    start = span.start + (window.e2e_s or 0.0)
    if span.end - start < _SETTLED * (span.end - span.start):
        return None
    rows = (
        timeline.within(start, span.end)
        .select("finished", "prompt_len", "computed_len")
        .drop_nulls()
    )
    prompts = float((rows["finished"] * rows["prompt_len"]).sum())
    computed = float((rows["finished"] * rows["computed_len"]).sum())
    return min(1.0, max(0.0, 1.0 - computed / prompts)) if prompts > 0 else None


def _least_repeated_rate(timeline: EngineTimeline, span: Span) -> float:
    """Give the counted rate of the quarter of scrapes with the fewest repeated lookups.

    What one stuck request adds to a scrape hides least of the others there.
    """
    rows = _counted(timeline, span).sort(
        pl.col("queries") / pl.col("prompt_tokens").clip(lower_bound=1.0), maintain_order=True
    )
    rows = rows.head(max(1, round(_LEAST_REPEATED * rows.height)))
    lookups = float(rows["queries"].sum())
    return float(rows["hits"].sum()) / lookups if lookups > 0 else 0.0


def _quiet_rate(timeline: EngineTimeline, span: Span) -> float | None:
    """Give the counted rate of the scrapes in which no request was looked up twice."""
    rows = _counted(timeline, span)
    quiet = rows.filter(pl.col("queries") <= INFLATED * pl.col("prompt_tokens"))
    prompts, lookups = float(rows["prompt_tokens"].sum()), float(quiet["queries"].sum())
    if lookups <= 0 or float(quiet["prompt_tokens"].sum()) < _QUIET_SHARE * prompts:
        return None
    return float(quiet["hits"].sum()) / lookups


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
