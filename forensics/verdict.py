"""Opinions → verdict: one primary cause, contributing ones with shares, or an honest abstention."""

from dataclasses import dataclass

from forensics.catalog.messages import Message

HEALTHY = "healthy"
INSUFFICIENT = "insufficient-evidence"


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
