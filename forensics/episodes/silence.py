"""Times in which an engine shows no request and no progress, between times in which it did.

Gauges are published with the engine's own steps: one that freezes between two of them looks as if
nothing had been asked of it.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.episodes.runs import Run, runs
from forensics.timeline import EngineTimeline

_LEAST_POINTS = 3
# Steady traffic moves something in nine points of ten; one that comes in bursts pauses by itself.
_STEADY = 0.9
# So many requests on either side that none in between is not chance. Guess.
_ENOUGH = 20.0


def busy(grid: pl.DataFrame) -> np.ndarray:
    """Tell where requests run or wait; shape (n,)."""
    on_board = sum(
        grid[name].fill_null(0.0).to_numpy() for name in ("running", "waiting", "swapped")
    )
    return np.asarray(on_board >= 1)


def still(grid: pl.DataFrame) -> np.ndarray:
    """Tell where no token was generated or booked, and at least one of the two was observed."""
    seen = np.zeros(grid.height, dtype=bool)
    moved = np.zeros(grid.height, dtype=bool)
    for name in ("generation_tokens", "prompt_tokens", "generation_tps", "prompt_tps"):
        values = grid[name].to_numpy().astype(float)
        seen |= ~np.isnan(values)
        moved |= np.nan_to_num(values) > 0
    return seen & ~moved


def silences(timeline: EngineTimeline, least_s: float) -> list[Run]:
    """Find the times without a request or progress that requests came before and after.

    Args:
        timeline: the engine.
        least_s: seconds; shorter ones are left out.
    """
    grid = timeline.grid
    if not grid.height:
        return []
    quiet = still(grid) & ~busy(grid)
    found = runs(grid["time"].to_numpy(), quiet, timeline.step_s, _LEAST_POINTS, bridge=0)
    return [
        run
        for run in found
        if run.first and not run.open_ended and run.seconds + timeline.step_s >= least_s
    ]


def pauses(timeline: EngineTimeline, least_s: float) -> Iterator[Run]:
    """Find the silences amid steady traffic: whether anything was asked then, metrics cannot tell.

    Args:
        timeline: the engine.
        least_s: seconds; shorter ones are left out.
    """
    name = "first_tokens" if timeline.has("first_tokens") else "finished"
    for run in silences(timeline, least_s):
        start, end = run.onset[1], run.end
        sides = (
            timeline.within(start - run.seconds - timeline.step_s, run.onset[0]),
            timeline.within(end, end + run.seconds + timeline.step_s),
        )
        if all(
            float(side[name].sum()) >= _ENOUGH and still(side).mean() <= 1.0 - _STEADY
            for side in sides
        ):
            yield run
