"""A rule's own interval → a case with the figures of that interval and of the time before it."""

from dataclasses import replace

from forensics.attribution import figures
from forensics.episodes import Span
from forensics.timeline import EngineTimeline
from rules.interface import Case

# The least that makes a level: the shortest segment of diagnosis.md, 3.3.
_WATCHED = 8


def seen_in(case: Case, inside: Span, baseline: Span | None) -> Case:
    """Look at the case through an interval.

    Args:
        case: the case of the whole window.
        inside: the interval that becomes `after`.
        baseline: what it is compared with; None when the data begin inside.
    """
    pool = case.epoch.pool.tokens
    return replace(
        case,
        before=figures(case.timeline, baseline, pool) if baseline is not None else None,
        after=figures(case.timeline, inside, pool),
        window=(inside.start, inside.end),
    )


def rate_is_seen(timeline: EngineTimeline) -> bool:
    """Tell whether the interval hit rate was watched, rather than read off a few scrapes."""
    return timeline.grid["hit_rate"].drop_nulls().len() >= _WATCHED
