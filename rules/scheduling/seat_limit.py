"""SCH301 seat-limit: max_num_seqs, or another admission limit, binds while the pool has room.

What it detects
    Requests that queue although the KV pool is far from full: the batch has as many seats as the
    limit allows.

Why it matters
    Latency is queueing and the cache is innocent. A larger limit may help, up to the ceiling.

Evidence it needs
    Running, waiting and KV usage; the limit itself from flags, or running that never passes a
    level.

How it decides
    A sustained run with requests waiting, running at the limit (or at a plateau that it never
    passes), usage below 0.9, nothing preempted.

When it is silent
    The pool is nearly full (KV201, KV202) or has no room for one more request of the usual size
    (KV203), nobody waits, or running is far below the limit and varies: then something else holds
    admission.

    Where prompts fill the steps and running is not known to be at the limit, the budget of a step
    holds the queue (SCH303) and the weight stays below one half.

False positives
    ``waiting_by_reason="capacity"`` covers a full batch and a full pool alike and is not used;
    ``deferred`` (0.20+) does not mean room at all and proves another limit.
    Running far below the limit with a queue is another admission limit (LoRA slots, KV transfers):
    reported with the level at which running stands still.

What to do
    Raise max_num_seqs to the ceiling if throughput still grows; else add replicas or bound the
    queue.

Versions
    The default limit differs by release and GPU (256 or 1024); only non-default values are logged.

References
    Recordings f- of the corpus; observed.md 9.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.catalog.messages import Message
from forensics.episodes import Run, runs
from rules.actions import admission_limit
from rules.exhaustion import counted_preemptions
from rules.exhibits import compare, is_alike, sides, stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.prefill import prompts_fill_steps
from rules.windows import first_onset, seen_in


@dataclass(frozen=True, slots=True)
class SeatLimitParams(Params):
    """Thresholds.

    Attributes:
        at_limit: running as a share of the limit that counts as full; 0.9, since one or two seats
            are empty at the instant of a sample (recordings f-: 7.7 of 8).
        room: usage below which the pool cannot be what holds admission (guess, with a margin to
            0.97).
        plateau: spread of running, as a share of its mean, that counts as standing still (guess).
        least_s: shorter runs are bursts, seconds (guess: longer than two stats intervals).
        queue: mean waiting, as a share of running, that makes it a queue (guess).
        deferred: share of the waiting that waits for another reason than room, from which on that
            reason is the limit: more than half.
        beside_prefill: weight of a plateau below the limit while prompts fill the steps (guess).
    """

    at_limit: float = 0.9
    room: float = 0.9
    plateau: float = 0.12
    least_s: float = 20.0
    queue: float = 0.1
    deferred: float = 0.5
    beside_prefill: float = 0.4


class SeatLimit:
    """The rule. See the module docstring."""

    id = "SCH301"
    name = "seat-limit"
    title = "An admission limit binds while the pool has room"
    severity = Severity.WARNING
    needs = ("running", "waiting", "kv_usage")
    scope = "window"

    def __init__(self, params: SeatLimitParams | None = None) -> None:
        self.params = params or SeatLimitParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the longest run of a queue before full seats in a roomy pool."""
        grid = case.timeline.grid.drop_nulls(["running", "waiting", "kv_usage"])
        if not grid.height:
            return None
        usage, seated = grid["kv_usage"].to_numpy(), grid["running"].to_numpy()
        holds = (grid["waiting"].to_numpy() >= 1) & (usage < self.params.room) & (seated >= 1)
        # Where few requests hold much, one more of their size does not fit: that is the pool.
        holds &= usage * (seated + 1) < np.maximum(seated, 1)
        counted = counted_preemptions(grid)
        if counted is not None:
            holds &= counted == 0
        found = [
            run
            for run in runs(grid["time"].to_numpy(), np.asarray(holds), case.timeline.step_s)
            if run.seconds >= self.params.least_s and self._stands_still(case, grid, run)
        ]
        if not found:
            return None
        run = max(found, key=lambda item: item.seconds)
        seen = seen_in(case, run.inside, run.baseline)
        running, waiting = seen.after.running or 0.0, seen.after.waiting or 0.0
        if waiting < self.params.queue * running:
            return None
        limit = seen.epoch.max_num_seqs
        at_limit = limit is not None and running >= self.params.at_limit * limit
        known = seen.epoch.max_num_seqs_stated is not None
        deferred = (seen.after.waiting_deferred or 0.0) > self.params.deferred * waiting
        weight = 0.93 if deferred or (at_limit and known) else 0.85 if at_limit else 0.7
        if not deferred and not at_limit and prompts_fill_steps(seen):
            weight = self.params.beside_prefill
        weight *= min(1.0, run.seconds / (2 * self.params.least_s))
        steady, moved = sides(
            seen, ("hit_rate", "generation_tps"), is_alike, Message("note.unchanged")
        )
        shown: list[Exhibit] = []
        if limit is not None:
            shown.append(stated("max_num_seqs", float(limit), "requests", case, "max_num_seqs"))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity,
            summary=Message(
                f"SCH301.{'deferred' if deferred else 'summary' if at_limit else 'other'}",
                {
                    "engine": case.timeline.engine,
                    "limit": limit,
                    "running": running,
                    "waiting": waiting,
                    "deferred": seen.after.waiting_deferred,
                    "usage": seen.after.usage_max,
                },
            ),
            onset=first_onset(found, run),
            end=None if run.open_ended else run.end,
            for_=(
                *shown,
                *compare(seen, "running", "waiting", "waiting_deferred", "usage_max"),
                *compare(seen, "queue_s", "ttft_s"),
            ),
            against=(*steady, *moved),
            actions=(
                Action(Message("SCH301.slots"), Message("SCH301.slots_effect"))
                if deferred
                else Action(
                    Message("SCH301.raise"), Message("SCH301.raise_effect"),
                    "--max-num-seqs <ceiling>",
                ),
                admission_limit(case, 2),
            ),
            missing=() if known or deferred else ("max_num_seqs",),
        )  # fmt: skip

    def _stands_still(self, case: Case, grid: pl.DataFrame, run: Run) -> bool:
        inside = grid[run.first : run.last + 1]
        running = inside["running"].to_numpy()
        if float(inside["waiting_deferred"].sum()) > self.params.deferred * float(
            inside["waiting"].sum()
        ):
            return True
        epoch = case.timeline.diary.at(run.inside.end)
        limit = epoch.max_num_seqs
        if limit is not None and float(np.median(running)) >= self.params.at_limit * limit:
            return True
        mean = float(running.mean())
        same = grid.filter(pl.col("time") > (epoch.start or 0.0))
        top = float(same["running"].to_numpy().max())
        near_top = float(np.median(running)) >= self.params.at_limit * top
        return mean >= 1 and float(running.std()) <= self.params.plateau * mean and near_top
