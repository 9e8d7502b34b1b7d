"""SCH304 replica-imbalance: one rank or replica carries the load while others idle.

What it detects
    Engines of one model that are up at the same time, one of them full of work and the rest nearly
    idle.

Why it matters
    The fleet's average looks calm, while users on the busy engine queue. Its pool is exhausted by
    traffic that would fit elsewhere.

Evidence it needs
    Running requests of at least two engines over the same time.

How it decides
    Time is cut into slices. In a slice the load is lopsided when this engine runs at least two
    requests and the median of the others runs at most a fifth of that. At least a minute, and at
    least half of the common time, must be lopsided. The weight is high when the busy engine hurts:
    it queues, its pool is full, or its latency is twice the others'.

When it is silent
    A single engine, engines of different models or roles (prefill and decode), traffic too thin to
    share out, or others that just came up.

False positives
    Routing by prefix sends one tenant's traffic to its home on purpose; as long as the home does
    not hurt, the weight stays middling.

What to do
    Look at the router: least-loaded instead of sticky or round-robin per connection; check that
    every rank is registered and healthy.

Versions
    From 0.8.3 each data-parallel rank has its own `engine` label and stats line. Internal load
    balancing counts waiting requests from 0.9 on.

References
    Metrics reference 1 (label `engine`: aggregate for a service view, diagnose per engine).
"""

from dataclasses import dataclass

import numpy as np

from forensics.attribution import figures
from forensics.catalog.messages import Message
from forensics.episodes import Run, Span, runs
from forensics.timeline import EngineTimeline
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.windows import seen_in


@dataclass(frozen=True, slots=True)
class ReplicaImbalanceParams(Params):
    """Thresholds.

    Attributes:
        slices: most pieces the common time is cut into.
        slice_s: shortest piece, seconds (guess: three stats intervals).
        least_running: mean running requests of the busy engine; below it one client alone makes
            any fleet look lopsided (guess).
        idle: what the median of the others may run, as a share of the busy one (guess).
        least_s: shorter spells are chance, seconds (guess).
        least_share: share of the common time that is lopsided (guess).
        full: usage that hurts, ratio.
        slower: latency against the others' that hurts (guess).
    """

    slices: int = 24
    slice_s: float = 30.0
    least_running: float = 2.0
    idle: float = 0.2
    least_s: float = 60.0
    least_share: float = 0.5
    full: float = 0.9
    slower: float = 2.0


class ReplicaImbalance:
    """The rule. See the module docstring."""

    id = "SCH304"
    name = "replica-imbalance"
    title = "One rank or replica carries the load while others idle"
    severity = Severity.WARNING
    needs = ("running",)
    scope = "window"

    def __init__(self, params: ReplicaImbalanceParams | None = None) -> None:
        self.params = params or ReplicaImbalanceParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge this engine against the rest of its fleet."""
        if len(case.fleet) < 2 or (case.after.running_max or 0.0) < self.params.least_running:
            return None
        others = [other for other in case.fleet if _comparable(case, other)]
        common = _common(case.timeline, others)
        if common is None:
            return None
        bounds = self._bounds(common)
        mine = _running(case.timeline, bounds)
        rest = np.stack([_running(other, bounds) for other in others])
        up = ~np.isnan(rest).all(axis=0) & ~np.isnan(mine)
        median = np.full(mine.size, np.nan)
        median[up] = np.nanmedian(rest[:, up], axis=0)
        holds = up & (mine >= self.params.least_running) & (median <= self.params.idle * mine)
        width = float(bounds[1] - bounds[0])
        if holds.sum() < self.params.least_share * max(1, int(up.sum())):
            return None
        found = runs(bounds[1:], holds, width, least_points=1, bridge=1)
        found = [run for run in found if run.seconds >= self.params.least_s]
        if not found:
            return None
        run = max(found, key=lambda item: item.seconds)
        seen = seen_in(case, run.inside, None)
        idle = float(np.nanmean(median[run.first : run.last + 1]))
        hurts = self._hurts(seen, others, run)
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.9 if hurts else 0.55,
            severity=self.severity if hurts else Severity.INFO,
            summary=Message(
                "SCH304.summary",
                {
                    "engine": case.timeline.engine,
                    "running": seen.after.running,
                    "count": len(others),
                    "idle": idle,
                },
            ),
            onset=(run.inside.start, run.onset[1]),
            end=None if run.open_ended else run.end,
            for_=(
                *compare(seen, "running", "waiting_max", "usage_max", "ttft_s"),
                Exhibit(
                    "running_of_others", None, idle, "requests",
                    others[0].place("running", run.end), Message("note.others_idle"),
                ),
            ),
            against=compare(seen, "hit_rate", note=Message("note.prefix_home")),
            actions=(
                Action(Message("SCH304.router"), Message("SCH304.router_effect")),
                Action(Message("SCH304.members"), Message("SCH304.members_effect"),
                       "sum by (instance, engine) (vllm:num_requests_running)", 2),
            ),
        )  # fmt: skip

    def _bounds(self, common: Span) -> np.ndarray:
        length = common.end - common.start
        count = int(np.clip(length / self.params.slice_s, 2, self.params.slices))
        return np.linspace(common.start, common.end, count + 1)

    def _hurts(self, seen: Case, others: list[EngineTimeline], run: Run) -> bool:
        if (seen.after.waiting_max or 0) >= 1 or (seen.after.usage_max or 0) >= self.params.full:
            return True
        waits = [figures(other, run.inside).ttft_s for other in others]
        known = [value for value in waits if value is not None]
        mine = seen.after.ttft_s
        return (
            bool(known)
            and mine is not None
            and mine >= self.params.slower * float(np.median(known))
        )


def _comparable(case: Case, other: EngineTimeline) -> bool:
    """Tell whether another engine serves the same model in the same role."""
    if other.engine == case.timeline.engine or not other.grid.height or not other.has("running"):
        return False
    epoch = other.diary.at(case.window[1])
    # Prefill and decode instances of a disaggregated fleet are loaded differently by design.
    if epoch.flag("kv_transfer_config") or case.epoch.flag("kv_transfer_config"):
        return False
    mine, theirs = case.epoch.model, epoch.model
    return mine is None or theirs is None or mine.value == theirs.value


def _common(mine: EngineTimeline, others: list[EngineTimeline]) -> Span | None:
    """Give the time that all of them cover; None when there is none."""
    if not others or not mine.grid.height:
        return None
    grids = [mine.grid, *(other.grid for other in others)]
    start = max(float(grid["time"][0]) for grid in grids)
    end = min(float(grid["time"][-1]) for grid in grids)
    return Span(start, end) if end > start else None


def _running(timeline: EngineTimeline, bounds: np.ndarray) -> np.ndarray:
    """Give the mean of running per slice; NaN where the engine was not observed; shape (n - 1,)."""
    known = timeline.grid.select("time", "running").drop_nulls()
    times, values = known["time"].to_numpy(), known["running"].to_numpy()
    index = np.searchsorted(bounds, times, side="left") - 1
    inside = (index >= 0) & (index < bounds.size - 1)
    sums = np.bincount(index[inside], values[inside], minlength=bounds.size - 1)
    counts = np.bincount(index[inside], minlength=bounds.size - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: np.ndarray = np.where(counts > 0, sums / counts, np.nan)
    return means
