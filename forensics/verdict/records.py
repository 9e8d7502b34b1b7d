"""The verdict's records, and what an answer takes."""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.interface import Case, Opinion

HEALTHY = "healthy"
INSUFFICIENT = "insufficient-evidence"

ANSWERED = 0.5
"""Least confidence of a verdict: a cause that is less likely than not is not named."""
OBSERVED = 0.3
"""Least weight of a finding beside the verdict: below it the evidence speaks against (guess)."""
PART_OF_ANSWER = 0.2
"""Share of the whole fall from which a cause counts as part of the answer (JSON contract)."""

_PASSING_AT_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Contribution:
    """A further cause and its share of the fall (None where no fall is shared out)."""

    cause: str
    share: float | None


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The cause that came second, and the measurement that would decide between the two."""

    cause: str
    confidence: float
    would_decide: Message | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is held to be true of the whole input.

    Attributes:
        cause: one of the causes, `healthy` or `insufficient-evidence`.
        confidence: 0-1, calibrated.
        engine: where; None when it concerns all.
        onset: (earliest, latest) UTC seconds; None without an incident.
        end: UTC seconds; None when it goes on or there was none.
        summary: one sentence.
        contributing: other causes that are part of the answer (share of at least 0.2).
        candidates: with `insufficient-evidence`, the causes weighed, most likely first.
        missing: what would have been needed, by name.
    """

    cause: str
    confidence: float
    engine: str | None
    onset: tuple[float, float] | None
    end: float | None
    summary: Message
    contributing: tuple[Contribution, ...] = ()
    runner_up: RunnerUp | None = None
    candidates: tuple[tuple[str, float], ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """An opinion and the case it is about."""

    case: Case
    opinion: Opinion

    @property
    def taken(self) -> float:
        """Hit-rate points that this cause took in its case; 0 without a fall."""
        return fall(self.case) * (self.opinion.share or 0.0)

    @property
    def points(self) -> float:
        """What `taken` counts for when causes are ranked.

        A dip that came back by itself counts for the part of the rest of the recording that it
        lasted, half at most: what stays is what one asks about.
        """
        episode = self.case.episode
        if episode is None or not episode.recovered:
            return self.taken
        last = float(self.case.timeline.grid["time"][-1])
        rest = max(last - episode.onset[1], 1.0)
        return self.taken * min(_PASSING_AT_MOST, (episode.end - episode.onset[1]) / rest)


@dataclass(frozen=True, slots=True)
class Weighing:
    """What became of an opinion: primary, contributing, runner-up, also-observed or rejected."""

    judged: Judged
    role: str


def fall(case: Case) -> float:
    """Give the hit-rate points that a case lost; 0 without an episode."""
    return case.episode.before - case.episode.level if case.episode is not None else 0.0
