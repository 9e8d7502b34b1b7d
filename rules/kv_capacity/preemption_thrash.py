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
    Runs no further apart than they last are one spell. In it, at least 0.7 preemptions per minute
    and 0.01 per finished request, with the pool full in a quarter of the points (or 0.1 per
    request, whatever the samples met); or two or more stats intervals that only preemption
    explains. The same rule over all the time since the change says whether it is a regime or a
    spell.

When it is silent
    Nothing was preempted, or the pool was full for moments only: passing peaks are no regime.

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
from rules.exhaustion import Spell
from rules.exhibits import compare
from rules.interface import Case, Exhibit, Opinion, Params, Severity
from rules.regime import course, regimes


@dataclass(frozen=True, slots=True)
class PreemptionThrashParams(Params):
    """Thresholds.

    Attributes:
        per_minute: preemptions per minute; 0.7 has no false negative in diagnosis.md, section 2.
    """

    per_minute: float = 0.7


class PreemptionThrash:
    """The rule. See the module docstring."""

    id = "KV202"
    name = "preemption-thrash"
    title = "Repeated preemption wastes work"
    severity = Severity.CRITICAL
    needs = ("preemptions|preemption_lower_bound|waiting", "kv_usage|preemptions")
    scope = "window"

    def __init__(self, params: PreemptionThrashParams | None = None) -> None:
        self.params = params or PreemptionThrashParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the worst spell of preemption."""
        found = [(spell, seen) for spell, seen in regimes(case) if self._thrashes(spell)]
        if not found:
            return None
        worst, seen = max(found, key=lambda pair: (pair[0].preemptions or 0.0, pair[0].conserved))
        counted = worst.preemptions is not None
        shown = compare(seen, "preemptions", "preemptions_per_min", "usage_max", "waiting_max")
        if not counted:
            place = case.timeline.place("running", worst.full_from)
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
            end=worst.end,
            for_=(
                *shown,
                *course(case, worst.inside),
                *compare(seen, "ttft_s", "decode_s", "itl_s"),
            ),
            against=compare(seen, "hit_rate"),
            actions=(lower_batch(case, 1), admission_limit(case, 2), grow_pool(case, 3)),
            missing=() if counted else ("preemptions",),
        )

    def _thrashes(self, spell: Spell) -> bool:
        if spell.preemptions is None:
            return True
        minutes = max(spell.seconds, 1.0) / 60.0
        return spell.preemptions / minutes >= self.params.per_minute
