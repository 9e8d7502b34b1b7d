"""SCH305 overload-shedding: requests are refused because demand is above capacity.

What it detects
    Requests answered 429 or 503, or refused by the server's own queue limit, while the engine
    works.

Why it matters
    The engine's own latency looks fine, because the load it cannot carry never gets in. To clients
    it is an outage.

Evidence it needs
    ``admission_rejections_total`` (0.32+), or access lines with their status.

How it decides
    At least ten refusals in one spell, at least one in a hundred of all requests, while tokens were
    being generated. A queue, full seats or a full pool at the same time say that demand is the
    reason.

When it is silent
    Refusals without any work (a server that starts, sleeps or is dead answers 503 too), or single
    ones.

False positives
    Limits set on purpose, per tenant: then the refusals are policy.

What to do
    Tell clients to back off, add replicas, or raise the limit only if the ceiling allows it.

Versions
    ``--max-num-queued-reqs`` and its counter exist from 0.32; before, refusals come from a proxy or
    from the server's concurrency limit, and only access lines show them.

References
    Diagnosis reference 5 (published case: 81 to 89 % of peak kept at a connection limit of 136).
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from forensics.episodes import Run, runs
from rules.actions import spelled
from rules.exhibits import compare
from rules.interface import Action, Case, Opinion, Params, Severity
from rules.windows import seen_in

_DOWN = ("engine_dead", "oom", "stop", "start", "restart", "sleep")


@dataclass(frozen=True, slots=True)
class OverloadSheddingParams(Params):
    """Thresholds.

    Attributes:
        least_count: refusals of a spell (guess).
        least_share: of all requests in the spell, ratio (guess: a target of 99 % is missed).
        high_share: from here on the finding is critical (guess).
        bridge: points without refusals that do not end a spell (guess: a minute at 10 s).
        down_s: a process event this close before a spell explains it, seconds (guess).
    """

    least_count: float = 10.0
    least_share: float = 0.01
    high_share: float = 0.1
    bridge: int = 6
    down_s: float = 60.0


class OverloadShedding:
    """The rule. See the module docstring."""

    id = "SCH305"
    name = "overload-shedding"
    title = "Requests are refused: demand is above capacity"
    severity = Severity.WARNING
    needs = ("rejected",)
    scope = "window"

    def __init__(self, params: OverloadSheddingParams | None = None) -> None:
        self.params = params or OverloadSheddingParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the spell with the most refusals."""
        grid = case.timeline.grid
        if not grid.height:
            return None
        refused = grid["rejected"].fill_null(0.0).to_numpy()
        found = [
            (float(refused[run.first : run.last + 1].sum()), run)
            for run in runs(
                grid["time"].to_numpy(), refused > 0, case.timeline.step_s, 1, self.params.bridge
            )
            if not self._down(case, run)
        ]
        if not found:
            return None
        count, run = max(found, key=lambda item: item[0])
        seen = seen_in(case, run.inside, run.baseline)
        working = (seen.after.generation_tps or 0.0) > 0 or (seen.after.running or 0.0) > 0
        if count < self.params.least_count or not working:
            return None
        served = (seen.after.requests_per_s or 0.0) * seen.after.seconds or seen.after.requests
        share = count / (count + served) if served else None
        if share is not None and share < self.params.least_share:
            return None
        pressed = self._pressed(case, seen)
        high = share is not None and share >= self.params.high_share
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.95 if pressed else 0.7,  # refusals are counted, not inferred
            severity=Severity.CRITICAL if high else self.severity,
            summary=Message(
                "SCH305.summary" if share is not None else "SCH305.count",
                {"engine": case.timeline.engine, "count": count, "share": share},
            ),
            onset=run.onset,
            end=None if run.open_ended else run.end,
            for_=compare(seen, "rejected", "waiting_max", "running_max", "usage_max"),
            against=compare(seen, "ttft_s", note=Message("note.inside_fine")),
            actions=(
                Action(Message("SCH305.back_off"), Message("SCH305.back_off_effect")),
                Action(Message("SCH305.replicas"), Message("SCH305.replicas_effect"), None, 2),
                Action(
                    Message("SCH305.limit"), Message("SCH305.limit_effect"),
                    spelled(case.epoch, "--max-num-queued-reqs", "<limit>"),
                    3,
                ),
            ),
            missing=() if served else ("finished",),
        )  # fmt: skip

    def _pressed(self, case: Case, seen: Case) -> bool:
        """Tell whether queue, seats or pool show that demand was at the limit."""
        limit = case.epoch.max_num_seqs
        seats = limit is not None and (seen.after.running_max or 0.0) >= 0.9 * limit
        queue = (seen.after.waiting_max or 0.0) >= 1
        return seats or queue or (seen.after.usage_max or 0.0) >= 0.9

    def _down(self, case: Case, run: Run) -> bool:
        """Tell whether the process was ending, sleeping or starting at the spell's beginning."""
        return any(
            mark.kind in _DOWN
            and run.inside.start - self.params.down_s <= mark.time <= run.onset[1]
            for mark in case.timeline.marks
        )
