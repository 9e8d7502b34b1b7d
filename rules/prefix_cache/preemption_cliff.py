"""PC101 preemption-cliff: the pool ran out, requests were preempted, and the hit rate broke.

What it detects
    A fall of the hit rate in the same episode in which the KV pool was exhausted and running
    requests were preempted.

Why it matters
    On a graph it looks like traffic whose prompts became more diverse, and people fix the wrong
    thing. The cached prefixes were there; running requests took their blocks.

Evidence it needs
    KV usage and preemptions (counter, V0 warnings, or conservation in the stats lines), and the
    interval hit rate.

How it decides
    The preemption regime is present when at least 0.01 preemptions per finished request were seen
    and the pool was at 0.97 or more in at least a quarter of the samples, or 0.03 whatever the
    samples show: a preempted request gives its blocks back, so they may miss the full pool. Of all
    the time since the change the exhibits say whether it was a regime or spells of it. It is
    the cause of the fall as far as the fall is a loss of capacity (attribution), not of attainable
    hits. The order of events is not asked: the rate falls seconds before the first counted
    preemption, because idle cached blocks are taken before running ones.

When it is silent
    No preemption was counted, proven or shown by conservation; or the hit rate never fell.

False positives
    Preemptions with shared prefixes pinned by running requests lower nothing: then the fall has
    another reason and this rule says so by a low weight.

What to do
    Lower max_num_seqs to the recommended ceiling to stop preemption; admit fewer live sessions or
    route them to bring the hits back.

Versions
    V0 from 0.4.3 and V1 from 0.8.0 count preemptions; before, only logs hint at them. V1's counter
    lags until the victim's next output.

References
    Recordings b-, l-, k- of the corpus; diagnosis reference 1.1, 2 (0.03) and 3.4; memory model
    reference 4; falls of real servers under drawn loads (docs/attribution.md).
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from forensics.episodes.printed_rate import spans
from rules.actions import admission_limit, larger_pool, lower_batch, potential
from rules.exhaustion import Spell
from rules.exhibits import compare, is_alike, sides
from rules.interface import Case, Exhibit, Opinion, Params, Severity
from rules.prefix_cache.strength import lacking, strength
from rules.regime import course, regime_share, regimes
from rules.testimony import spoken
from rules.windows import rate_is_seen
from rules.workload import workload


@dataclass(frozen=True, slots=True)
class PreemptionCliffParams(Params):
    """Thresholds.

    Attributes:
        alone: weight when the regime is present but its own loss is hidden by an earlier cause;
            below what a verdict needs, so that it is reported and never leads (guess).
        from_log: weight on stats lines alone: conservation is good evidence of preemption, and the
            lagging rate weak evidence that hits went with it (guess).
        stood: how much the printed rate may have fallen before the exhaustion (its noise, guess).
        least_loss: hit-rate points below the best level; 0.05 is the noise limit of diagnosis.md.
    """

    alone: float = 0.35
    from_log: float = 0.62
    stood: float = 0.03
    least_loss: float = 0.05


class PreemptionCliff:
    """The rule. See the module docstring."""

    id = "PC101"
    name = "preemption-cliff"
    title = "The pool ran out, running requests were preempted, and the hit rate broke"
    severity = Severity.CRITICAL
    needs = ("kv_usage|preemptions", "preemptions|preemption_lower_bound|waiting")
    scope = "both"

    def __init__(self, params: PreemptionCliffParams | None = None) -> None:
        self.params = params or PreemptionCliffParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall, or, for the whole window, a regime whose own loss is hidden."""
        if case.episode is None:
            return self._hidden(case)
        if case.attribution is None:
            return None
        regime = regime_share(case)
        if regime == 0.0:
            return None
        share = case.attribution.share("capacity")
        heard, contrary = spoken(case, "capacity")
        same, other = sides(case, ("prompt_len",), is_alike, Message("note.same_prompts"))
        summary = Message(
            "PC101.summary",
            {
                "engine": case.timeline.engine,
                "before": case.episode.before,
                "after": case.episode.level,
                "preemptions": case.after.preemptions,
                "usage": case.after.usage,
            },
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=regime * strength(case.attribution, "capacity"),
            severity=self.severity,
            summary=summary,
            share=share * regime,
            onset=case.episode.onset,
            end=case.episode.end if case.episode.recovered else None,
            for_=(
                *compare(case, "preemptions", "saturated", note=Message("note.exhausted")),
                *course(case, case.episode.after),
                *compare(case, "hit_rate", "hit_per_request", "usage", "running", "waiting"),
                *compare(case, "residence_s", note=Message("note.residence")),
                *same,
                *heard,
                *workload(case),
            ),
            against=(*other, *contrary),
            actions=(lower_batch(case, 1), admission_limit(case, 2), *larger_pool(case, 3)),
            would_decide=potential(case),
            missing=lacking(case),
        )

    def _hidden(self, case: Case) -> Opinion | None:
        """Report the regime by itself: hits were already low when it began."""
        found = regimes(case)
        if found and not rate_is_seen(case.timeline):
            return self._from_log(case, found[0][0])
        peak = _best_rate(case)
        if not found or peak is None:
            return None
        longest, seen = max(found, key=lambda pair: (pair[0].seconds, -pair[0].full_from))
        low = seen.after.hit_rate
        if low is None or peak - low < self.params.least_loss:
            return None
        summary = Message(
            "PC101.hidden",
            {
                "engine": case.timeline.engine,
                "preemptions": longest.preemptions,
                "rate": low,
                "peak": peak,
            },
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=self.params.alone,
            severity=Severity.WARNING,
            summary=summary,
            onset=longest.pressure_onset,
            end=longest.end,
            for_=(
                *compare(case, "preemptions", "usage_max", "waiting_max"),
                *course(case, longest.inside),
            ),
            actions=(lower_batch(case, 1), admission_limit(case, 2)),
        )

    def _from_log(self, case: Case, first: Spell) -> Opinion | None:
        """Judge stats lines alone: the printed rate stood and then fell with the exhaustion.

        It spans 1,000 requests, so it lags: a rate that already fell before says nothing of this.
        """
        grid = case.timeline.grid.select("time", "logged_hit_rate").drop_nulls()
        calm = grid.filter(grid["time"] <= first.pressure_onset[0])["logged_hit_rate"]
        after = grid.filter(grid["time"] > first.pressure_onset[0])["logged_hit_rate"]
        if calm.len() < 3 or not after.len():
            return None
        level, best, low = float(calm[-1]), max(calm.to_list()), min(after.to_list())
        if best - level > self.params.stood or level - low < self.params.least_loss:
            return None
        place = case.timeline.place("logged_hit_rate", first.full_from)
        lag = Message(f"note.lags_{spans(case.timeline.diary.at(first.full_from))}")
        shown = Exhibit("logged_hit_rate", level, low, "ratio", place, lag)
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=self.params.from_log,
            severity=self.severity,
            summary=Message(
                "PC101.from_log",
                {
                    "engine": case.timeline.engine,
                    "before": level,
                    "after": low,
                    "intervals": float(first.conserved),
                },
            ),
            onset=first.pressure_onset,
            end=first.end,
            for_=(shown, *compare(case, "usage_max", "waiting_max", "running_max")),
            actions=(lower_batch(case, 1), admission_limit(case, 2), *larger_pool(case, 3)),
            would_decide=Message("decide.counters"),
            missing=("prefix-cache counters", "preemptions"),
        )


def _best_rate(case: Case) -> float | None:
    rates = case.timeline.grid["hit_rate"].drop_nulls()
    if rates.len() < 8:
        return None
    best = rates.rolling_mean(8).max()
    return float(best) if isinstance(best, int | float) else None
