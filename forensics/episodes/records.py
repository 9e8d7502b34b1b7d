"""Change points → episodes: when a signal that matters left its own baseline."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of UTC seconds, open at the start: samples in (start, end] belong to it."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Episode:
    """An interval in which a signal left its baseline.

    Attributes:
        engine: name of the engine.
        signal: canonical signal whose change makes the episode (hit_rate, ttft_s, …).
        onset: (last sample of the old level, first sample of the new one), UTC seconds.
        end: UTC seconds at which it came back or the data end; `recovered` tells which.
        baseline / after: the windows compared.
        before / level: mean of the signal in the two windows, weighted by traffic.
        error: standard error of the difference, overdispersion included.
        requests_before / requests_after: traffic behind the two figures, None when not counted.
    """

    engine: str
    signal: str
    onset: tuple[float, float]
    end: float
    recovered: bool
    baseline: Span
    after: Span
    before: float
    level: float
    error: float
    requests_before: float | None = None
    requests_after: float | None = None
