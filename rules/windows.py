"""A rule's own interval → a case with the figures of that interval and of the time before it."""

from dataclasses import replace

from forensics.attribution import figures
from forensics.episodes import Span
from rules.interface import Case


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
