"""Change points → episodes: what changed, when, by how much; and runs in which a condition held."""

from forensics.episodes.changes import SAME_FALL_S, Changes, changes_of
from forensics.episodes.detect import LEAST_FALL, hit_rate_episodes, judged_singly
from forensics.episodes.dips import event_dips
from forensics.episodes.records import Episode, Span
from forensics.episodes.runs import Run, runs
from forensics.episodes.silence import busy, pauses, silences, still

__all__ = [
    "LEAST_FALL",
    "SAME_FALL_S",
    "Changes",
    "Episode",
    "Run",
    "Span",
    "busy",
    "changes_of",
    "event_dips",
    "hit_rate_episodes",
    "judged_singly",
    "pauses",
    "runs",
    "silences",
    "still",
]
