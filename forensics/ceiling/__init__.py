"""Bounds → the recommended batch limit and, where hits matter, the admission limit."""

from forensics.ceiling.records import Bound, Ceiling, GapRow, Input, Limit, Sweep, SweepRow

__all__ = ["Bound", "Ceiling", "GapRow", "Input", "Limit", "Sweep", "SweepRow"]
