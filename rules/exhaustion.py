"""When the pool was exhausted: the runs that preemption, queueing and thrash rules share.

The pool counts as exhausted while usage is at 0.97 or more, or while preemptions are counted or
proven. V1 counts a preemption with the victim's next output, so the counter lags; V0 prints every
50th only. Without any counter (V1 logs alone), preemption shows as conservation: running falls by
N, waiting rises by N, the pool stays full, and no prompt was admitted in between.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.attribution.figures import SATURATED
from forensics.episodes import Run, Span, runs
from forensics.timeline import EngineTimeline

# Below this many points a full pool is a passing peak. Guess; a scrape or two is what noise gives.
_LEAST_POINTS = 3
_BRIDGE = 6
# Log lines are rounded and 5-10 s apart: a swap of this many requests is not arrivals and leavers.
_LEAST_MOVED = 3.0


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """One run of an exhausted pool.

    Attributes:
        run: when.
        pressure_onset: (last time usage was at its calm level, first exhausted point), UTC s.
        preemptions: counted, or proven by V0's warnings; None when nothing counts them.
        conserved: intervals in which requests moved from running back to waiting, full pool, as
            seen in stats lines.
    """

    run: Run
    pressure_onset: tuple[float, float]
    preemptions: float | None
    conserved: int


@dataclass(frozen=True, slots=True)
class Spell:
    """Runs of an exhausted pool that belong together, seen as one.

    Attributes:
        inside: the time under pressure, from where usage left its calm level to the last exhausted
            point.
        baseline: everything before; None when the data begin inside.
        pressure_onset / preemptions / conserved: as of its runs, the counts added up.
        full_from: first exhausted point, UTC seconds.
        end: UTC seconds; None when it goes on to the end of the data.
    """

    inside: Span
    baseline: Span | None
    pressure_onset: tuple[float, float]
    full_from: float
    end: float | None
    preemptions: float | None
    conserved: int

    @property
    def seconds(self) -> float:
        """Length of the time under pressure."""
        return self.inside.end - self.inside.start


def exhaustions(timeline: EngineTimeline) -> tuple[Exhaustion, ...]:
    """Find the runs of an exhausted pool on one engine."""
    return timeline.once("exhaustions", lambda: tuple(_exhaustions(timeline)))


def _exhaustions(timeline: EngineTimeline) -> list[Exhaustion]:
    grid = timeline.grid
    counted = counted_preemptions(grid)
    if not grid.height or not (timeline.has("kv_usage") or counted is not None):
        return []
    times = grid["time"].to_numpy()
    usage = grid["kv_usage"].fill_null(strategy="forward").fill_null(0.0).to_numpy()
    active = usage >= SATURATED
    if counted is not None:
        active |= counted > 0
    found: list[Exhaustion] = []
    for run in runs(times, active, timeline.step_s, _LEAST_POINTS, _BRIDGE):
        inside = slice(run.first, run.last + 1)
        if float(usage[inside].max()) < 0.9 and (counted is None or counted[inside].sum() < 2):
            continue
        found.append(
            Exhaustion(
                run,
                _pressure_onset(times, usage, run),
                None if counted is None else float(counted[inside].sum()),
                conserved_moves(timeline, run.inside.start, run.inside.end),
            )
        )
    return found


def spells(timeline: EngineTimeline) -> list[Spell]:
    """Group runs of an exhausted pool that belong together.

    A pool at its edge is full and not full in turn. Runs no further apart than the longer of the
    two lasted are one spell, judged as a whole.
    """
    groups: list[list[Exhaustion]] = []
    for item in exhaustions(timeline):
        last = groups[-1][-1].run if groups else None
        apart = item.run.inside.start - last.end if last else 0.0
        if last is not None and apart <= max(last.seconds, item.run.seconds):
            groups[-1].append(item)
        else:
            groups.append([item])
    return [_spell(group) for group in groups]


def _spell(parts: list[Exhaustion]) -> Spell:
    first, last = parts[0], parts[-1]
    counts = [item.preemptions for item in parts if item.preemptions is not None]
    begun, over = first.run.inside.start, last.run.inside.end
    # A slow climb to a full pool is not the regime itself: no more of it than the rest lasts.
    start = max(first.pressure_onset[0], begun - (over - begun))
    calm = first.run.baseline
    return Spell(
        inside=Span(start, over),
        baseline=Span(calm.start, start) if calm is not None and calm.start < start else None,
        pressure_onset=first.pressure_onset,
        full_from=first.run.onset[1],
        end=None if last.run.open_ended else last.run.end,
        preemptions=sum(counts) if counts else None,
        conserved=sum(item.conserved for item in parts),
    )


def counted_preemptions(grid: pl.DataFrame) -> np.ndarray | None:
    """Give preemptions per point, the larger of counted and proven; None when nothing counts."""
    known: list[np.ndarray] = [
        grid[name].fill_null(0.0).to_numpy()
        for name in ("preemptions", "preemption_lower_bound")
        if grid[name].null_count() < grid.height
    ]
    if not known:
        return None
    return known[0] if len(known) == 1 else max(known, key=lambda values: float(values.sum()))


def conserved_moves(timeline: EngineTimeline, start: float, end: float) -> int:
    """Count stats intervals that only preemption explains (V1 logs print no preemption).

    Running falls by N, waiting rises by nearly N, usage is near 1 before, and no prompt tokens were
    processed in between (admissions would have moved requests the other way).
    """
    log = timeline.log_grid.filter((pl.col("time") > start) & (pl.col("time") <= end))
    if log.height < 2 or log["waiting"].null_count() == log.height:
        return 0
    moved = log.select(
        fell=-pl.col("running").diff(),
        rose=pl.col("waiting").diff(),
        full=pl.col("kv_usage").shift(1) >= 0.9,
        quiet=pl.col("prompt_tps").fill_null(1.0) < 1.0,
    )
    hits = moved.filter(
        (pl.col("fell") >= _LEAST_MOVED)
        & (pl.col("rose") >= _LEAST_MOVED)
        & ((pl.col("fell") - pl.col("rose")).abs() <= 0.34 * pl.col("fell"))
        & pl.col("full")
        & pl.col("quiet")
    )
    return hits.height


def _pressure_onset(times: np.ndarray, usage: np.ndarray, run: Run) -> tuple[float, float]:
    """Walk back from the first exhausted point to where usage left its calm level."""
    first = run.first
    if first == 0:
        return (float(times[0]), float(times[0]))
    calm = float(np.median(usage[max(0, first - 60) : first]))
    calm = min(calm, float(np.quantile(usage[:first], 0.5)))
    limit = calm + 0.15 * (1.0 - calm)
    at = first - 1
    while at > 0 and usage[at] > limit:
        at -= 1
    return (float(times[at]), float(times[min(at + 1, first)]))
