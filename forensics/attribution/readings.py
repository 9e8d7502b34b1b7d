"""What a witness read, before it is weighed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One witness before it is weighed: its figure, and what was read before and after."""

    value: float
    before: float | None = None
    after: float | None = None
