"""Change points → episodes: what changed, when, by how much; and runs in which a condition held."""

from forensics.episodes.detect import doubtful_falls, hit_rate_episodes, judged_singly
from forensics.episodes.dips import event_dips
from forensics.episodes.records import Episode, Span
from forensics.episodes.runs import Run, runs

__all__ = [
    "Episode",
    "Run",
    "Span",
    "doubtful_falls",
    "event_dips",
    "hit_rate_episodes",
    "judged_singly",
    "runs",
]
