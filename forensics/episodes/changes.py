"""One engine → all that changed on it: falls of the hit rate, however seen, and slow requests."""

from dataclasses import dataclass

from forensics.episodes.detect import hit_rate_falls
from forensics.episodes.dips import event_dips
from forensics.episodes.latency import latency_episode
from forensics.episodes.records import Episode
from forensics.timeline import EngineTimeline

# A fall that only the raw counters show must not lie within a fall that the requests had.
SAME_FALL_S = 60.0


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed on one engine.

    Attributes:
        falls: of the hit rate: those of requests, then further ones that begin at an event, then
            further ones that only the counters show.
        doubtful: steps down that may be chance, see `Falls`.
        slow: the largest lasting rise of a latency; None when requests stayed as fast.
    """

    falls: tuple[Episode, ...]
    doubtful: tuple[Episode, ...]
    slow: Episode | None


def changes_of(timeline: EngineTimeline) -> Changes:
    """Find what changed on one engine; each search is made once."""
    of_requests = hit_rate_falls(timeline)
    falls = list(of_requests.carried)
    for further in (event_dips(timeline), hit_rate_falls(timeline, "counter_hit_rate").carried):
        for extra in further:
            if not any(_overlap(extra, known) for known in falls):
                falls.append(extra)
    return Changes(tuple(falls), of_requests.doubtful, latency_episode(timeline))


def _overlap(extra: Episode, known: Episode) -> bool:
    return extra.onset[0] <= known.end + SAME_FALL_S and known.onset[0] <= extra.end + SAME_FALL_S
