"""A rule's own interval → a case with the figures of that interval and of the time before it."""

from collections.abc import Sequence
from dataclasses import replace

from forensics.attribution import figures
from forensics.episodes import Run, Span
from forensics.timeline import EngineTimeline
from rules.interface import Case

# The least that makes a level: the shortest segment of diagnosis.md, 3.3.
_WATCHED = 8
# Runs at least half as long as the longest are of its kind (guess).
_COMPARABLE = 0.5


def seen_in(case: Case, inside: Span, baseline: Span | None) -> Case:
    """Look at the case through an interval.

    Args:
        case: the case of the whole window.
        inside: the interval that becomes `after`.
        baseline: what it is compared with; None when the data begin inside.
    """
    epoch = case.timeline.diary.at(inside.end)
    pool = epoch.pool.tokens
    return replace(
        case,
        epoch=epoch,
        before=figures(case.timeline, baseline, pool) if baseline is not None else None,
        after=figures(case.timeline, inside, pool),
        window=(inside.start, inside.end),
    )


def first_onset(found: Sequence[Run], longest: Run) -> tuple[float, float]:
    """Give when a state that comes and goes began: with its first run of comparable length."""
    return next(run.onset for run in found if run.seconds >= _COMPARABLE * longest.seconds)


def rate_is_seen(timeline: EngineTimeline) -> bool:
    """Tell whether the interval hit rate was watched, rather than read off a few scrapes."""
    return timeline.grid["hit_rate"].drop_nulls().len() >= _WATCHED
