"""Bounds → the recommended batch limit and, where hits matter, the admission limit."""

from typing import TYPE_CHECKING

from forensics.ceiling.records import Bound, Ceiling, GapRow, Input, Limit, Sweep, SweepRow

if TYPE_CHECKING:
    from forensics.ceiling.recommendation import recommend

__all__ = [
    "Bound",
    "Ceiling",
    "GapRow",
    "Input",
    "Limit",
    "Sweep",
    "SweepRow",
    "recommend",
]


def __getattr__(name: str) -> object:
    """Hand out `recommend` lazily: the records alone must not pull in frames."""
    if name == "recommend":
        from forensics.ceiling.recommendation import recommend

        return recommend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
