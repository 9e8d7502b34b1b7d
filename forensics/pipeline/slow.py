"""Requests that became slow: the rise of a latency as a case, explained by a rule or not."""

from forensics.attribution import figures
from forensics.pipeline.judge import JudgedEngine
from rules import Case


def slowest_case(engines: tuple[JudgedEngine, ...]) -> Case | None:
    """Give the case of the engine whose latency rose most; None when requests stayed as fast."""
    rises = [(one.slow, one.timeline) for one in engines if one.slow is not None]
    if not rises:
        return None
    episode, timeline = max(rises, key=lambda rise: rise[0].level / rise[0].before)
    epoch = timeline.diary.at(episode.onset[1])
    return Case(
        timeline=timeline,
        epoch=epoch,
        episode=episode,
        attribution=None,
        window=(episode.baseline.start, episode.after.end),
        before=figures(timeline, episode.baseline, epoch.pool.tokens),
        after=figures(timeline, episode.after, epoch.pool.tokens),
        slow=episode,
        fleet=tuple(one.timeline for one in engines),
    )
