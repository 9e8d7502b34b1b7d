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
class Witness:
    """One observation that tells capacity from diversity.

    Attributes:
        name: stable name of what was observed.
        value: the figure the weight is applied to; scale-free.
        before / after: what was read in the two windows, None where it is a figure of the change.
        log_odds: what it adds to the log-odds of "capacity" against "diversity".
    """

    name: str
    value: float
    before: float | None
    after: float | None
    log_odds: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The parts of one fall; they sum to `before - after` within rounding.

    Attributes:
        before / after: interval hit rate in the two windows of the episode.
        parts: diversity, capacity, cold, counting, in this order.
        decided: whether the parts could be told apart at all.
        basis: "exact" (request contents), "score" (limits and weights) or "event" (restart, reset).
        witnesses: what moved the split, the strongest first.
        capacity_odds: probability that capacity rather than diversity is the larger of the two;
            None where request contents or an event left nothing to weigh.
        perhaps_counted: whether the counters may have made all of the fall but its noise: lookups
            repeat, and no tokens by source tell how many of them were hits.
    """

    before: float
    after: float
    parts: tuple[Part, ...]
    decided: bool
    basis: str
    witnesses: tuple[Witness, ...] = ()
    capacity_odds: float | None = None
    perhaps_counted: bool = False

    def share(self, part: str) -> float:
        """Give a part's share of the fall, 0-1."""
        fall = self.before - self.after
        value = next((item.value for item in self.parts if item.part == part), 0.0)
        return min(1.0, max(0.0, value / fall)) if fall > 0 else 0.0
