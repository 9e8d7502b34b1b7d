"""KV201 kv-capacity-queueing: the pool is full and admission waits for blocks.

What it detects
    Requests that wait because no blocks are free, without any preemption.

Why it matters
    The engine works at its limit; latency is queueing, and one more long request tips it over.

Evidence it needs
    KV usage and waiting; preemptions to rule the worse state out.

How it decides
    Usage stays at 0.95 or more while at least one request waits, running is below the batch limit,
    and nothing was preempted in that run.

When it is silent
    Preemptions were counted or shown by conservation (KV202), or the batch limit binds (SCH301).

False positives
    From 0.20 on ``waiting_by_reason="capacity"`` covers a full batch too and is not asked here;
    what is ``deferred`` waits for something else than room and is taken off.

What to do
    Grow the pool, bound the queue, or cap lengths.

Versions
    V1 from 0.19 admits a prompt only if all of it fits, which turns preemption into this queue.

References
    Memory model reference 3; observed.md 9.
"""

from dataclasses import dataclass

import numpy as np

from forensics.catalog.messages import Message
from forensics.episodes import runs
from rules.actions import admission_limit, grow_pool
from rules.exhaustion import conserved_moves, counted_preemptions
from rules.exhibits import compare
from rules.interface import Case, Opinion, Params, Severity
from rules.windows import first_onset, seen_in


@dataclass(frozen=True, slots=True)
class CapacityQueueingParams(Params):
    """Thresholds.

    Attributes:
        full: usage from which a pool admits nothing but the smallest prompts (guess; 0.95 is where
            the memory-model reference puts "close to full").
        uncounted: weight where nothing counts preemptions; below what a verdict needs, since the
            worse state looks the same there.
        least_s: shorter runs are bursts, seconds (guess: longer than one stats interval).
    """

    full: float = 0.95
    uncounted: float = 0.45
    least_s: float = 15.0


class CapacityQueueing:
    """The rule. See the module docstring."""

    id = "KV201"
    name = "kv-capacity-queueing"
    title = "The pool is full and admission waits for blocks"
    severity = Severity.WARNING
    needs = ("kv_usage", "waiting")
    scope = "window"

    def __init__(self, params: CapacityQueueingParams | None = None) -> None:
        self.params = params or CapacityQueueingParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the longest run of a full pool with a queue and without preemption."""
        grid = case.timeline.grid.drop_nulls(["kv_usage", "waiting"])
        if not grid.height:
            return None
        usage = grid["kv_usage"].to_numpy()
        waiting = (grid["waiting"] - grid["waiting_deferred"].fill_null(0.0)).to_numpy()
        holds = (usage >= self.params.full) & (waiting >= 1)
        limit = case.epoch.max_num_seqs
        if limit is not None:
            holds &= grid["running"].fill_null(0.0).to_numpy() < limit
        found = [
            run
            for run in runs(grid["time"].to_numpy(), np.asarray(holds), case.timeline.step_s)
            if run.seconds >= self.params.least_s
        ]
        if not found:
            return None
        run = max(found, key=lambda item: item.seconds)
        counted = counted_preemptions(grid[run.first : run.last + 1])
        if counted is not None and float(counted.sum()) > 0:
            return None
        if conserved_moves(case.timeline, run.inside.start, run.inside.end):
            return None
        seen = seen_in(case, run.inside, run.baseline)
        long_enough = min(1.0, run.seconds / (4 * self.params.least_s))
        counts = counted is not None
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=(0.9 if counts else self.params.uncounted) * long_enough,
            severity=self.severity,
            summary=Message(
                "KV201.summary",
                {
                    "engine": case.timeline.engine,
                    "usage": seen.after.usage,
                    "waiting": seen.after.waiting,
                    "seconds": run.seconds,
                },
            ),
            onset=first_onset(found, run),
            end=None if run.open_ended else run.end,
            for_=compare(seen, "usage", "waiting", "queue_s", "ttft_s"),
            against=compare(seen, "preemptions"),
            actions=(grow_pool(case, 1), admission_limit(case, 2)),
            missing=() if counts else ("preemptions",),
        )
