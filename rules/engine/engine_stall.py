"""ENG501 engine-stall: work is waiting or running and nothing moves.

What it detects
    An engine that holds requests and makes no progress: no token generated, no prompt processed,
    usage frozen. Also requests that wait while nothing runs in an empty pool, stats lines that stop
    with requests on board while the log goes on, and a silence that requests waited through.

Why it matters
    It looks like load (a queue, time-outs) and no load remedy helps. Clients hang until they give
    up; health checks often stay green.

Evidence it needs
    Running and waiting, and at least one of the token counters or throughputs.

How it decides
    For at least a minute (vLLM itself complains about a step after 60 s) running plus waiting is at
    least one while both token counters stand still and usage does not change. A V1 engine prints a
    stats line without throughput once and then falls silent, so such a last line, followed by a
    minute of other lines, counts as well. Requests that wait, a restart or death at the end, or
    vLLM's own complaint make it strong, and so do stats lines that stopped, since any progress
    would have printed another one. A frozen gauge with nothing waiting is weak, because gauges are
    not updated while an engine has nothing to do. So is a log that ends with a line of requests
    that wait while nothing runs and nothing moved: what came after is not known. An engine that
    froze between two reports shows an empty server; if one of the first requests answered after
    such a silence had waited for half of it, it was none.

When it is silent
    Anything moves, usage rises (a very long prompt is computed in chunks and booked at its end),
    the server was stopping or asleep, or the data simply end.

False positives
    A suspended virtual machine; requests that wait for remote KV blocks that arrive late.

What to do
    Take stack traces of the engine process (py-spy dump), restart it, look at the last lines of
    each worker; for waiting without running look at what admission waits for.

Versions
    All. From 0.20 ``Deferred`` tells requests that wait for another reason than room.

References
    Log reference 2.2 (idle lines are DEBUG from 0.8.5) and 7 (slow step); observed.md 12 (frozen
    gauges for some 9 s after a stop signal).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.catalog.messages import Message
from forensics.episodes import Run, Span, busy, runs, silences, still
from forensics.timeline import EngineTimeline, Mark
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.windows import seen_in

_ENDINGS = ("restart", "engine_dead", "stall", "error")
_ENDS_LIFE = ("start", "restart", "stop", "engine_dead", "oom")
# The requests that waited are answered at once; the first scrape after may have been missed. Guess.
_NEXT_POINTS = 3
_QUIET = ("stop", "sleep", "start", "stats_disabled", "engine_dead", "oom")


@dataclass(frozen=True, slots=True)
class EngineStallParams(Params):
    """Thresholds.

    Attributes:
        least_s: seconds without progress; 60 is after what vLLM warns of a blocked step.
        least_points: points of a run, so that one odd sample is none.
        frozen: change of usage that still counts as frozen, ratio (a block or two of a small pool).
        near_s: an ending this far behind the run belongs to it, seconds (guess: time to restart).
        weak: weight of a frozen running gauge that nothing confirms (guess).
        silent: weight of stats lines that stopped after one without throughput (guess).
        unprinted: the same after a line with throughput (guess).
        waited: part of a silence that a request answered after it must have waited (guess: most of
            it, less what the first of them came late).
        waited_weight: weight of that; the wait is measured, why is not known (guess).
    """

    least_s: float = 60.0
    least_points: int = 3
    frozen: float = 0.005
    near_s: float = 300.0
    weak: float = 0.45
    silent: float = 0.8
    unprinted: float = 0.6
    waited: float = 0.5
    waited_weight: float = 0.9


class EngineStall:
    """The rule. See the module docstring."""

    id = "ENG501"
    name = "engine-stall"
    title = "Work is waiting or running and nothing moves"
    severity = Severity.CRITICAL
    needs = ("running|waiting", "generation_tokens|prompt_tokens|generation_tps")
    scope = "window"

    def __init__(self, params: EngineStallParams | None = None) -> None:
        self.params = params or EngineStallParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the longest time without progress."""
        stalls = self._stalls(case.timeline, case.timeline.grid)
        waited_through = self._waited_through(case.timeline)
        found = [
            *((run, self.params.weak) for run in stalls),
            *self._silences(case.timeline),
            *((run, self.params.waited_weight) for run in waited_through),
        ]
        watched = bool(found)
        found = found or self._cut_short(case.timeline)
        found = [pair for pair in found if not self._explained(case.timeline, pair[0])]
        if not found:
            return None
        run, alone = max(found, key=lambda pair: pair[0].seconds)
        seen = seen_in(case, run.inside, run.baseline)
        waiting = seen.after.waiting_max or 0.0
        ending = self._ending(case.timeline, run)
        idle_queue = waiting >= 1 and not seen.after.running
        weight = alone
        if ending or (waiting >= 1 and watched and alone != self.params.unprinted):
            weight = 0.9
        weight = 0.95 if idle_queue and watched else weight
        key = "ENG501.queue" if idle_queue else "ENG501.summary"
        if run in waited_through:
            key = "ENG501.waited"
        shown = list(
            compare(seen, "running", "waiting_max", "generation_tps", "prompt_tps", "usage_max")
        )
        if ending is not None:
            shown.append(Exhibit(ending.kind, None, ending.text, "event", ending.place))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity if weight > self.params.weak else Severity.WARNING,
            summary=Message(
                key,
                {
                    "engine": case.timeline.engine,
                    "running": seen.after.running,
                    "waiting": waiting,
                    "seconds": run.seconds,
                },
            ),
            onset=run.onset,
            end=None if run.open_ended else run.end,
            for_=tuple(shown),
            against=() if weight > self.params.weak else compare(seen, "waiting_max"),
            actions=(
                Action(Message("ENG501.dump"), Message("ENG501.dump_effect"),
                       "py-spy dump --pid <EngineCore pid>"),
                Action(Message("ENG501.restart"), Message("ENG501.restart_effect"), None, 2),
            ),
            would_decide=None if weight > self.params.weak else Message("decide.request"),
            missing=() if weight > self.params.weak else ("a later sample, line or answer",),
        )  # fmt: skip

    def _stalls(self, timeline: EngineTimeline, grid: pl.DataFrame) -> list[Run]:
        """Give the runs of points with work on board and no progress."""
        if not grid.height:
            return []
        holds = busy(grid) & still(grid)
        found = runs(
            grid["time"].to_numpy(), holds, timeline.step_s, self.params.least_points, bridge=0
        )
        return [
            run
            for run in found
            if run.end - run.onset[1] + timeline.step_s >= self.params.least_s
            and self._usage_frozen(grid, run)
        ]

    def _waited_through(self, timeline: EngineTimeline) -> list[Run]:
        """Give the times of an empty server that the requests answered next had waited through."""
        waits = timeline.histograms.get("ttft_s")
        if waits is None:
            return []
        found: list[Run] = []
        for run in silences(timeline, self.params.least_s):
            # A request counts only in a bucket all of which is above the wait that is asked for.
            below = np.flatnonzero(waits.edges >= self.params.waited * run.seconds)
            counts = waits.over(run.end, run.end + _NEXT_POINTS * timeline.step_s)
            if below.size > 1 and counts[-1] - counts[below[0]] >= 1:
                found.append(run)
        return found

    def _silences(self, timeline: EngineTimeline) -> list[tuple[Run, float]]:
        """Give the times in which stats lines stopped with work on board and the log went on.

        The weight is higher after a line without throughput, which is what a stalled engine prints
        last; without that line it may be the printing that stopped.
        """
        log = timeline.log_grid
        if not log.height or timeline.seen_until is None:
            return []
        times = log["time"].to_numpy()
        ends = np.append(times[1:], timeline.seen_until)
        longest = max(self.params.least_s, 6 * timeline.step_s)
        found: list[tuple[Run, float]] = []
        for index in np.flatnonzero(busy(log) & (ends - times >= longest)):
            at = float(times[index])
            # A process that ended or began anew meanwhile was not silent: it was not there.
            until = min([float(ends[index]), *_process_events(timeline, at)])
            # Counters that moved meanwhile, on the metrics' own clock, prove progress.
            if until - at < longest or _moved(timeline, at, until):
                continue
            printed_still = bool(still(log)[index])
            start = float(times[index - 1]) if index else at
            run = Run(
                onset=(start, at) if printed_still else (at, at + timeline.step_s),
                end=until,
                open_ended=index == times.size - 1 and until == timeline.seen_until,
                first=int(index),
                last=int(index),
                baseline=Span(float(times[0]) - timeline.step_s, start) if index else None,
                inside=Span(start, until),
            )
            found.append((run, self.params.silent if printed_still else self.params.unprinted))
        return found

    def _cut_short(self, timeline: EngineTimeline) -> list[tuple[Run, float]]:
        """Give the last interval of a log in which requests waited and nothing ran or moved."""
        log = timeline.log_grid
        if log.height < 2 or timeline.grid.height != log.height:
            return []
        last = log.tail(1)
        waits = (last["waiting"][0] or 0.0) >= 1 and last["running"][0] == 0.0
        if not waits or not bool(still(last)[0]):
            return []
        before, at = float(log["time"][-2]), float(log["time"][-1])
        span = Span(before, at)
        baseline = Span(float(log["time"][0]) - timeline.step_s, before)
        at_end = log.height - 1
        return [(Run((before, at), at, True, at_end, at_end, baseline, span), self.params.weak)]

    def _usage_frozen(self, grid: pl.DataFrame, run: Run) -> bool:
        usage = grid["kv_usage"][run.first : run.last + 1].drop_nulls().to_numpy()
        return not usage.size or float(usage.max() - usage.min()) <= self.params.frozen

    def _explained(self, timeline: EngineTimeline, run: Run) -> bool:
        return any(
            mark.kind in _QUIET and run.inside.start - 30.0 <= mark.time <= run.onset[1] + 30.0
            for mark in timeline.marks
        )

    def _ending(self, timeline: EngineTimeline, run: Run) -> Mark | None:
        """Give the event that confirms the stall: a complaint inside, a death or restart after."""
        near: Sequence[Mark] = [
            mark
            for mark in timeline.marks
            if mark.kind in _ENDINGS and run.onset[0] <= mark.time <= run.end + self.params.near_s
        ]
        return near[0] if near else None


def _process_events(timeline: EngineTimeline, after: float) -> list[float]:
    return [mark.time for mark in timeline.marks if mark.kind in _ENDS_LIFE and mark.time > after]


def _moved(timeline: EngineTimeline, start: float, end: float) -> bool:
    """Tell whether a point between two stats lines shows progress, or no work at all."""
    inside = timeline.grid.filter(
        (pl.col("time") > start + timeline.step_s) & (pl.col("time") < end)
    )
    return bool(inside.height) and not bool((still(inside) & busy(inside)).all())
