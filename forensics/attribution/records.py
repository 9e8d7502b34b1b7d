"""A fall of the hit rate in its parts: diversity, capacity, cold, counting."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a fall, in hit-rate points 0-1, with the interval it lies in."""

    part: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The parts of one fall; they sum to `before - after` within rounding.

    Attributes:
        before / after: interval hit rate in the two windows of the episode.
        parts: diversity, capacity, cold, counting, in this order.
        decided: whether capacity and diversity could be told apart at all.
        basis: "exact" (request contents), "score" (weights only) or "event" (restart, reset).
        reasons: what moved the split, as (witness name, log-odds towards capacity).
    """

    before: float
    after: float
    parts: tuple[Part, ...]
    decided: bool
    basis: str
    reasons: tuple[tuple[str, float], ...] = ()

    def share(self, part: str) -> float:
        """Give a part's share of the fall, 0-1."""
        fall = self.before - self.after
        value = next((item.value for item in self.parts if item.part == part), 0.0)
        return min(1.0, max(0.0, value / fall)) if fall > 0 else 0.0
