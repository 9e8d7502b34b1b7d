"""Requests that became slow: the rise of a latency as a case, explained by a rule or not."""

from forensics.attribution import figures
from forensics.episodes.latency import latency_episode
from forensics.timeline import EngineTimeline
from rules import Case


def slowest_case(fleet: tuple[EngineTimeline, ...]) -> Case | None:
    """Give the case of the engine whose latency rose most; None when requests stayed as fast."""
    rises = [(episode, one) for one in fleet if (episode := latency_episode(one)) is not None]
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
        fleet=fleet,
    )
