"""KV202 preemption-thrash: repeated preemption wastes work, hit rate aside.

What it detects
    Runs of an exhausted pool in which running requests are preempted again and again.

Why it matters
    Work is computed twice, and the tail of the latency goes from seconds to minutes (5 s to 590 s
    in one reference run), while throughput falls by only about 5 %.

Evidence it needs
    Preemptions: the counter (V0 0.4.3+, V1 0.8+), V0's sampled warnings, or conservation in V1's
    stats lines.

How it decides
    At least 0.7 preemptions per minute and 0.01 per finished request in a run, or two or more
    stats intervals that only preemption explains.

When it is silent
    Nothing was preempted.

False positives
    A forced preemption by reset_prefix_cache(reset_running_requests) counts too; the reset line
    stands beside it.

What to do
    Lower max_num_seqs to the ceiling; cap output lengths; grow the pool.

Versions
    V1 counts with the victim's next output, so the figure lags and misses victims that gave up.

References
    Diagnosis reference, section 2 (thresholds) and 1.1 (cost); metrics reference 3.5.
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.actions import admission_limit, grow_pool, lower_batch
from rules.exhaustion import Exhaustion, exhaustions
from rules.exhibits import compare
from rules.interface import Case, Exhibit, Opinion, Params, Severity
from rules.windows import seen_in


@dataclass(frozen=True, slots=True)
class PreemptionThrashParams(Params):
    """Thresholds.

    Attributes:
        per_minute: preemptions per minute; 0.7 has no false negative in diagnosis.md, section 2.
        per_request: preemptions per finished request; 0.01, same source.
    """

    per_minute: float = 0.7
    per_request: float = 0.01


class PreemptionThrash:
    """The rule. See the module docstring."""

    id = "KV202"
    name = "preemption-thrash"
    title = "Repeated preemption wastes work"
    severity = Severity.CRITICAL
    needs = ("preemptions|preemption_lower_bound|waiting", "kv_usage")
    scope = "window"

    def __init__(self, params: PreemptionThrashParams | None = None) -> None:
        self.params = params or PreemptionThrashParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the worst run of preemption."""
        found = [item for item in exhaustions(case.timeline) if self._thrashes(item)]
        if not found:
            return None
        worst = max(found, key=lambda item: (item.preemptions or 0.0, item.conserved))
        seen = seen_in(case, worst.run.inside, worst.run.baseline)
        per_request = seen.after.preemptions_per_request
        counted = worst.preemptions is not None
        if counted and per_request is not None and per_request < self.params.per_request:
            return None
        shown = compare(seen, "preemptions", "preemptions_per_min", "usage_max", "waiting_max")
        if not counted:
            place = case.timeline.place("running", worst.run.onset[1])
            shown = (
                Exhibit(
                    "conserved_moves", None, float(worst.conserved), "stats intervals", place,
                    Message("note.conservation"),
                ),
                *shown,
            )  # fmt: skip
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.95 if counted else 0.6,
            severity=self.severity,
            summary=Message(
                "KV202.summary" if counted else "KV202.conserved",
                {
                    "engine": case.timeline.engine,
                    "preemptions": worst.preemptions,
                    "per_minute": seen.after.preemptions_per_min,
                    "intervals": float(worst.conserved),
                },
            ),
            onset=worst.pressure_onset,
            end=None if worst.run.open_ended else worst.run.end,
            for_=(*shown, *compare(seen, "ttft_s", "decode_s", "itl_s")),
            against=compare(seen, "hit_rate"),
            actions=(lower_batch(case, 1), admission_limit(case, 2), grow_pool(case, 3)),
            missing=() if counted else ("preemptions",),
        )

    def _thrashes(self, item: Exhaustion) -> bool:
        if item.preemptions is None:
            return item.conserved >= 2
        minutes = max(item.run.seconds, 1.0) / 60.0
        return item.preemptions >= 2 and item.preemptions / minutes >= self.params.per_minute
