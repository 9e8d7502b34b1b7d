"""SCH303 prefill-bound: prompt processing saturates the step budget and starves decode.

What it detects
    Requests that wait although seats and pool are free, because every step is full of prompt
    tokens.

Why it matters
    KV usage looks harmless (saturation at 32 % has been seen), so people raise max_num_seqs or the
    pool, and nothing changes.

Evidence it needs
    Waiting, running, usage, and prompt tokens; inter-token latency and max_num_batched_tokens make
    it certain.

How it decides
    Over at least a minute requests wait, usage is below 0.9 and running below max_num_seqs. Then
    the computed prompt tokens of a step (tokens per second times inter-token latency) are held
    against max_num_batched_tokens: from half of it on, prefill fills the steps. Without that pair:
    at least four computed prompt tokens per generated one, with inter-token or prefill time grown
    1.5-fold (from stats lines: running requests over tokens per second). Where nothing came before
    to compare with: at least eight per generated one, at a steady rate. Where the seats are not
    known they may be what binds, unless a step holds more prompt tokens than half of the smallest
    default budget.

When it is silent
    The pool is full, the seats are taken, nothing waits, or prompts are few against answers: then
    another admission limit holds the queue (LoRA slots, grammars, remote KV).

False positives
    A burst of long prompts longer than a minute after which the queue drains by itself.

What to do
    Bring back prefix hits, raise max_num_batched_tokens if inter-token latency allows it, send long
    prompts to their own replicas (or disaggregate prefill), add replicas.

Versions
    V1 always chunks prompts. Logged prompt throughput counts computed tokens only from 0.16 on;
    before, cached ones too, and the hit rate is taken off.

References
    Metrics reference 3.7; log reference 2.2; Sarathi-Serve as quoted in diagnosis reference 5.
"""

from dataclasses import dataclass

import numpy as np

from forensics.catalog.messages import Message
from forensics.episodes import Run, runs
from rules.exhibits import compare, stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.prefill import (
    FILLED,
    MOSTLY_PROMPTS,
    SMALLEST_BUDGET,
    computed_tps,
    per_generated,
    per_step,
    slowed,
)
from rules.windows import seen_in


@dataclass(frozen=True, slots=True)
class PrefillBoundParams(Params):
    """Thresholds.

    Attributes:
        least_s: shorter queues are bursts, seconds (guess: six stats intervals).
        room: usage that leaves the pool out of it, ratio.
        ratio: computed prompt tokens per generated token that make prefill the larger work per
            step even with small batches (guess).
        steady: spread of the prompt rate over its mean that still is a plateau (guess).
    """

    least_s: float = 60.0
    room: float = 0.9
    ratio: float = 4.0
    steady: float = 0.5


class PrefillBound:
    """The rule. See the module docstring."""

    id = "SCH303"
    name = "prefill-bound"
    title = "Prompt processing saturates the step budget"
    severity = Severity.WARNING
    needs = ("waiting", "running", "kv_usage", "prompt_tps")
    scope = "window"

    def __init__(self, params: PrefillBoundParams | None = None) -> None:
        self.params = params or PrefillBoundParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the longest queue that neither seats nor pool explain."""
        run = self._longest(case)
        if run is None:
            return None
        seen = seen_in(case, run.inside, run.baseline)
        computed, ratio = computed_tps(seen.after), per_generated(seen.after)
        if not computed or ratio is None:
            return None
        budget, step = case.epoch.max_num_batched_tokens, per_step(seen.after)
        weight = self._weight(seen, run, ratio)
        if weight == 0.0:
            return None
        if case.epoch.max_num_seqs is None and (step or 0.0) < FILLED * SMALLEST_BUDGET:
            weight *= 0.7  # The seats may be what binds.
        place = case.timeline.place("prompt_tps", run.onset[1])
        shown = [Exhibit("prompt_tokens_per_generated", None, min(ratio, 1e6), "tokens", place)]
        if step is not None:
            shown.append(Exhibit("prompt_tokens_per_step", None, step, "tokens", place))
        if budget is not None:
            shown.append(
                stated("max_num_batched_tokens", float(budget), "tokens", case,
                       "max_num_batched_tokens")
            )  # fmt: skip
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity,
            summary=Message(
                "SCH303.summary",
                {
                    "engine": case.timeline.engine,
                    "waiting": seen.after.waiting,
                    "usage": seen.after.usage_max,
                    "prompt_tps": computed,
                    "generation_tps": seen.after.generation_tps,
                },
            ),
            onset=run.onset,
            end=None if run.open_ended else run.end,
            for_=(*shown, *compare(seen, "waiting", "running", "usage_max", "itl_s", "prefill_s")),
            against=compare(seen, "preemptions", "output_len"),
            actions=(
                Action(Message("SCH303.budget"), Message("SCH303.budget_effect"),
                       "--max-num-batched-tokens <tokens>"),
                Action(Message("SCH303.separate"), Message("SCH303.separate_effect"), None, 2),
                Action(Message("SCH303.replicas"), Message("SCH303.replicas_effect"), None, 3),
            ),
            missing=tuple(
                name
                for name, value in (
                    ("max_num_batched_tokens", budget),
                    ("itl_s", seen.after.itl_s),
                    ("max_num_seqs", case.epoch.max_num_seqs),
                )
                if value is None
            ),
        )  # fmt: skip

    def _longest(self, case: Case) -> Run | None:
        grid = case.timeline.grid.drop_nulls(["waiting", "running", "kv_usage"])
        if not grid.height:
            return None
        limit = case.epoch.max_num_seqs
        holds = (grid["waiting"].to_numpy() >= 1) & (grid["kv_usage"].to_numpy() < self.params.room)
        if limit is not None:
            holds &= grid["running"].to_numpy() < limit
        found = runs(grid["time"].to_numpy(), holds, case.timeline.step_s)
        found = [run for run in found if run.seconds >= self.params.least_s]
        return max(found, key=lambda run: run.seconds, default=None)

    def _weight(self, seen: Case, run: Run, ratio: float) -> float:
        """Give the strength by the firmest measure there is; 0 when it speaks against."""
        budget, step = seen.epoch.max_num_batched_tokens, per_step(seen.after)
        if step is not None and budget:
            filled = step / budget
            if filled >= FILLED:
                return 0.7 + 0.25 * min(1.0, (filled - FILLED) / FILLED)
        if ratio < self.params.ratio:
            return 0.0
        slow = slowed(seen)
        if slow:
            return 0.65
        if slow is False or ratio < MOSTLY_PROMPTS:
            return 0.0
        grid = seen.timeline.grid
        inside = grid.filter((grid["time"] >= run.onset[1]) & (grid["time"] <= run.end))
        rate = inside["prompt_tps"].drop_nulls().to_numpy()
        steady = rate.size >= 3 and float(rate.std()) <= self.params.steady * float(rate.mean())
        return 0.55 if steady and bool(np.all(rate >= 0)) else 0.0
