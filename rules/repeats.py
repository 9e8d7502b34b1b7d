"""Proof that the traffic still repeats although nothing hits: what three rules look at.

When hits go to zero for everyone, either the prompts stopped sharing or the cache stopped working;
the engine's own counters cannot tell. A restart that brings the hits back, or a replica of the same
model that kept them on its share of the same traffic, can.

Zero hits with several requests running also rule out eviction: requests that run together pin what
they share, whatever was recycled. One hit rules out a cache that stopped working.
"""

import polars as pl

from forensics.attribution import figures
from forensics.catalog.messages import Message
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline
from rules.exhibits import alike
from rules.interface import Case, Exhibit

# Rounding of sums; anything real shows at least a block here and there.
ZERO_RATE = 0.003
# An event this far from an onset still belongs to it: logs and metrics are aligned to a stats
# interval; seconds.
SLACK_S = 30.0
# What comes back after a restart, or stays at a replica, against what was there before (guess: half
# and most of it).
_BACK = 0.5
_KEPT = 0.7
# Requests behind a rate (diagnosis.md, section 0).
_LEAST_REQUESTS = 100.0
_LEAST_POINTS = 8
_SEVERAL = 2.0
_EMPTYING = ("restart", "start", "reset", "sleep")
ROOM = 0.6
"""Usage up to which there is no doubt that the pool had room, ratio (guess)."""
LEAST_RESIDENCE_S = 15.0
"""Shorter survival of blocks explains any miss; the probe of diagnosis.md begins at 5 and 15 s."""
DOUBT = 0.4
"""Share of a vanished hit rate left to a defect of the engine where the figures show no change of
the traffic: not less likely than that, and less likely than a new template (guess)."""


def low_time(case: Case, episode: Episode) -> Span:
    """Give the time from the complete fall until it ends, or until the process does."""
    start = episode.onset[1] + case.timeline.step_s
    ends = [mark.time for mark in case.timeline.marks if mark.kind in ("restart", "stop")]
    later = [time for time in ends if time > start + SLACK_S]
    return Span(start, min([episode.end, *later]))


def hits_vanished(case: Case, episode: Episode) -> bool:
    """Tell whether not one of several requests at a time hit anything after the fall.

    Counters tell exactly; a rate that was recovered from an average only to its rounding.
    """
    low = low_time(case, episode)
    seen = figures(case.timeline, low)
    together = seen.running is None or seen.running >= _SEVERAL
    rows = case.timeline.within(low.start, low.end)
    name = next((n for n in ("cached_tokens", "hits") if case.timeline.has(n)), None)
    gone = seen.hit_rate is not None and seen.hit_rate <= ZERO_RATE
    if name is not None and gone:
        gone = float(rows[name].sum()) == 0.0
    return gone and together


def lookups_may_fail(
    case: Case,
    episode: Episode,
    room: float = ROOM,
    residence_s: float = LEAST_RESIDENCE_S,
    requests: float = _LEAST_REQUESTS,
) -> bool:
    """Tell whether hits stopped as they do when a cache stops working.

    Nothing at all hits from the complete fall on, over enough requests, with no event that empties
    a cache at the onset, in a pool with room in which blocks survive.

    Args:
        case: the case.
        episode: its fall.
        room: usage up to which the pool had room, ratio.
        residence_s: least survival of a released block.
        requests: least requests behind the zero.
    """
    counted = figures(case.timeline, low_time(case, episode)).requests
    if not hits_vanished(case, episode) or (counted is not None and counted < requests):
        return False
    if any(
        mark.kind in _EMPTYING
        and episode.onset[0] - SLACK_S <= mark.time <= episode.onset[1] + SLACK_S
        for mark in case.timeline.marks
    ):
        return False
    seen = case.after
    if seen.usage_max is None or seen.usage_max > room or seen.preemptions:
        return False
    return seen.residence_s is None or seen.residence_s >= residence_s


def nothing_else_changed(case: Case) -> bool:
    """Tell whether prompts stayed as long, and requests held as much of the pool as before.

    Running requests that stop sharing hold more each; prompts of another kind have another length.
    Where neither moved, only the hits did. (A cache that stops working ends sharing as well, so
    requests that hold more do not rule it out; they are what new prompts are known to look like.)
    """
    before = case.before
    pairs = [
        (getattr(before, name), getattr(case.after, name))
        for name in ("prompt_len", "usage_per_running")
    ]
    known = [(old, new) for old, new in pairs if old and new is not None]
    return bool(known) and all(alike(old, new) for old, new in known)


def back_by_restart(case: Case, episode: Episode) -> Exhibit | None:
    """Show the restart that ended the zero; None when hits came back otherwise, or not at all."""
    for mark in case.timeline.marks:
        if mark.kind != "restart" or mark.time < episode.onset[1] + SLACK_S:
            continue
        end = float(case.timeline.grid["time"][-1])
        later = figures(case.timeline, Span(mark.time, end)).hit_rate
        zero = figures(case.timeline, low_time(case, episode)).hit_rate
        if zero is None or later is None or later < _BACK * episode.before:
            return None
        if zero > ZERO_RATE:
            return None
        note = Message("note.back_by_restart")
        return Exhibit("hit_rate", zero, later, "ratio", mark.place, note)
    return None


def peer_that_kept(case: Case, episode: Episode) -> Exhibit | None:
    """Show a replica of the same model that kept its hits over the same time."""
    before = Span(episode.baseline.start, episode.baseline.end)
    during = low_time(case, episode)
    for other in case.fleet:
        if other.engine == case.timeline.engine or not _same_model(case, other, during.start):
            continue
        if other.grid.filter(pl.col("hit_rate").is_not_null()).height < _LEAST_POINTS:
            continue
        then, now = figures(other, before), figures(other, during)
        if then.hit_rate is None or now.hit_rate is None:
            continue
        busy = now.requests is None or now.requests >= _LEAST_REQUESTS
        if busy and now.hit_rate >= _KEPT * max(then.hit_rate, episode.before):
            note = Message("note.peer_kept", {"engine": other.engine})
            place = other.place("hit_rate", episode.onset[1])
            return Exhibit("hit_rate", then.hit_rate, now.hit_rate, "ratio", place, note)
    return None


def still_repeats(case: Case, episode: Episode) -> Exhibit | None:
    """Show what proves that the traffic repeats while nothing hits; None without such proof."""
    if not hits_vanished(case, episode):
        return None
    return back_by_restart(case, episode) or peer_that_kept(case, episode)


def _same_model(case: Case, other: EngineTimeline, time: float) -> bool:
    mine, theirs = case.epoch.model, other.diary.at(time).model
    return mine is None or theirs is None or mine.value == theirs.value
