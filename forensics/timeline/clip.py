"""A timeline → the part of it that the operator asked about (--since, --until)."""

from dataclasses import replace

import polars as pl

from forensics.timeline.records import EngineTimeline


def clip(timeline: EngineTimeline, since: float | None, until: float | None) -> EngineTimeline:
    """Keep points and marks within the bounds, UTC seconds; start-up facts stay in the diary."""
    if since is None and until is None:
        return timeline
    low = since if since is not None else float("-inf")
    high = until if until is not None else float("inf")
    inside = (pl.col("time") >= low) & (pl.col("time") <= high)
    return replace(
        timeline,
        grid=timeline.grid.filter(inside),
        log_grid=timeline.log_grid.filter(inside),
        marks=tuple(mark for mark in timeline.marks if low <= mark.time <= high),
    )
