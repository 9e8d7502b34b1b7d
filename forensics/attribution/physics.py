"""What physics rules out or nearly decides, before any score: each limit with its source.

A function per witness; None where it has nothing to say.
"""

from forensics.attribution.figures import Figures
from forensics.attribution.onset import Shape, written
from forensics.attribution.records import Witness
from forensics.attribution.reuse import reuse_at_the_end
from forensics.episodes import Episode
from forensics.timeline import EngineTimeline

NEVER_FILLED = "pool_never_filled"
# Log-odds of what cannot be otherwise, and of what hardly can.
CERTAIN = 6.0
STRONG = 2.0
# Reuses as frequent at the end of the residence time as this share of those at its beginning go on
# beyond it. Of labelled falls with block histograms 8 of 24 with lost capacity reach it and none of
# 10 without, whose highest is 0.40.
_REUSE_GOES_ON = 0.45
# Prompts a quarter longer with hit tokens per request kept: a mix shift (diagnosis.md 3.5).
_LONGER = 1.25
_HITS_KEPT = 0.8
# Such a mix is there from its first request on. Where prompts grow while hits creep down, sessions
# age: of labelled and modelled falls like that 9 of 9 lost capacity, of sudden ones 2 of 18.
_AT_ONCE = 0.8
# A pool smaller by a fifth holds noticeably fewer sessions; rank and build differences are below
# that. Guess.
_SMALLER_POOL = 0.8
# Exhausted pool: a quarter of the time full, a preemption per 100 requests (diagnosis.md 3.4).
SATURATED_SHARE = 0.25
PREEMPTED_SHARE = 0.01
# The best single threshold of the same reference, whatever usage was sampled.
PREEMPTED_OFTEN = 0.03
# Running requests no longer share: each holds nearly all of its own tokens, and at least 1.6 times
# what it held before. In `c-*` of the recordings 2.7 times with hits at zero; where live prefixes
# merely grew in number, up to 1.7 times, but hits stayed (simulated tenants).
_FOOTPRINT_GROWTH = 1.6
_FOOTPRINT_ALONE = 0.85
_HITS_GONE = 0.1
# A server that loads a large model is scraped only this long after its process started. Guess.
_START_UP_S = 600.0


def exhausted(after: Figures, alone: float = PREEMPTED_OFTEN) -> bool:
    """Tell whether the window shows the preemption regime.

    A server preempts when no block is left, so where usage was not observed the count speaks alone.
    So it does where requests are preempted often: each gives its blocks back, and samples meet the
    pool less than full (in falls of real servers full in 3 to 20 % of them).

    Args:
        after: figures of the window.
        alone: preemptions per finished request that need no full sample.
    """
    often = after.preemptions_per_request or 0.0
    full = after.saturated is None or after.saturated >= SATURATED_SHARE
    return often >= PREEMPTED_SHARE and (full or often >= alone)


def never_filled(
    timeline: EngineTimeline, episode: Episode, pool_tokens: float | None
) -> Witness | None:
    """Testify that nothing can have been evicted: less was written than the pool holds."""
    total = _written_since_start(timeline, episode.after.end)
    if pool_tokens is not None and total is not None and total < pool_tokens:
        share = total / pool_tokens
        return Witness(NEVER_FILLED, share, None, share, -CERTAIN)
    return None


def pool_shrank(before: float | None, after: float | None) -> Witness | None:
    """Testify that the pool has fewer tokens than before the fall."""
    shrunk = _ratio(after, before)
    if shrunk is not None and shrunk <= _SMALLER_POOL:
        # A restart with less room and a change of traffic at the same minute would be chance.
        return Witness("pool_shrank", shrunk, None, shrunk, 2 * STRONG)
    return None


def reuse_cut_short(timeline: EngineTimeline, episode: Episode) -> Witness | None:
    """Testify that blocks would have been reused beyond the time they stay."""
    cut = reuse_at_the_end(timeline, episode.after)
    if cut is not None and cut >= _REUSE_GOES_ON:
        earlier = reuse_at_the_end(timeline, episode.baseline)
        return Witness("reuse_cut_short", cut, earlier, cut, STRONG)
    return None


def longer_prompts(before: Figures, after: Figures, course: Shape | None) -> Witness | None:
    """Testify that prompts grew at once, with as many hits as before."""
    length = _ratio(after.prompt_len, before.prompt_len)
    hits = _ratio(after.hit_per_request, before.hit_per_request)
    if length is None or hits is None or course is None:
        return None
    if length >= _LONGER and hits >= _HITS_KEPT and course.early >= _AT_ONCE:
        lengths = before.prompt_len, after.prompt_len
        return Witness("longer_prompts_same_hits", length, *lengths, -STRONG)
    return None


def sharing_lost(
    episode: Episode, before: Figures, after: Figures, foot: tuple[float | None, float | None]
) -> Witness | None:
    """Testify that running requests of the same length no longer share blocks with each other.

    Args:
        episode: the fall.
        before: figures of its baseline.
        after: figures of its low time.
        foot: pool tokens per running request over its own tokens, before and after.
    """
    growth = _ratio(foot[1], foot[0])
    length = _ratio(after.prompt_len, before.prompt_len)
    if growth is None or length is None:
        return None
    alike = 1 / _LONGER < length < _LONGER
    alone = growth >= _FOOTPRINT_GROWTH and (foot[1] or 0.0) >= _FOOTPRINT_ALONE
    if alike and alone and episode.level < _HITS_GONE and not exhausted(after):
        return Witness("sharing_of_running_lost", growth, foot[0], foot[1], -STRONG)
    return None


def _written_since_start(timeline: EngineTimeline, until: float) -> float | None:
    """Give the tokens written since the process started; None when the start was not watched."""
    starts = [mark.time for mark in timeline.marks if mark.kind in ("start", "restart", "reset")]
    begun = max((time for time in starts if time <= until), default=None)
    grid = timeline.grid
    amounts = written(timeline)
    if begun is None or amounts is None or not grid.height:
        return None
    times = grid["time"].to_numpy()
    if float(times[0]) > begun + 2 * timeline.step_s:
        # Scraped from after the start: complete only if nothing was served at first either. (The
        # first scrape itself has no amount.)
        known = amounts[grid["generation_tokens"].is_not_null().to_numpy()]
        idle = known.size > 0 and float(known[0]) == 0.0
        if not idle or float(times[0]) > begun + _START_UP_S:
            return None
    inside = (times > begun) & (times <= until)
    return float(amounts[inside].sum())


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below is not None and below > 0 else None
