"""A condition over time → the runs in which it held, for what is a state and not a level."""

from dataclasses import dataclass

import numpy as np

from forensics.episodes.records import Span


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch in which a condition held.

    Attributes:
        onset: (last point before, first point inside), UTC seconds; both the first point when the
            data begin inside the run.
        end: UTC seconds of the last point inside; `open_ended` when the data end there.
        first / last: row indices of the first and last point inside.
        baseline: everything before the run (or since the previous run); None when there is nothing.
        inside: the run as a span.
    """

    onset: tuple[float, float]
    end: float
    open_ended: bool
    first: int
    last: int
    baseline: Span | None
    inside: Span

    @property
    def seconds(self) -> float:
        """Length from the first to the last point inside."""
        return self.inside.end - self.inside.start


def runs(
    times: np.ndarray, holds: np.ndarray, step_s: float, least_points: int = 3, bridge: int = 2
) -> list[Run]:
    """Find the runs of a condition.

    Args:
        times: UTC seconds, increasing; shape (n,).
        holds: whether the condition holds; shape (n,).
        step_s: usual distance of points, seconds.
        least_points: shorter runs are left out.
        bridge: up to this many points without the condition do not end a run.
    """
    found: list[Run] = []
    inside = np.flatnonzero(holds)
    if not inside.size:
        return found
    cuts = np.flatnonzero(np.diff(inside) > bridge + 1) + 1
    previous_end: float | None = None
    for piece in np.split(inside, cuts):
        if piece.size < least_points:
            continue
        first, last = int(piece[0]), int(piece[-1])
        before = float(times[first - 1]) if first else float(times[first])
        start = previous_end if previous_end is not None else float(times[0]) - step_s
        found.append(
            Run(
                onset=(before, float(times[first])),
                end=float(times[last]),
                open_ended=last == times.size - 1,
                first=first,
                last=last,
                baseline=Span(start, before) if first and before > start else None,
                inside=Span(before if first else before - step_s, float(times[last])),
            )
        )
        previous_end = float(times[last])
    return found
