"""Change points → episodes: what changed, when, by how much."""

from forensics.episodes.detect import hit_rate_episodes
from forensics.episodes.records import Episode, Span

__all__ = ["Episode", "Span", "hit_rate_episodes"]
