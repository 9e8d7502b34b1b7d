"""PC107 counting-artifact: the number changed, not the cache.

What it detects
    A fall (or rise) of the counted hit rate that the requests themselves did not have: lookups of a
    blocked request counted again every step, resumed requests counted as hits, a definition that
    changed with the release.

Why it matters
    Any tuning would be aimed at a fault of the measurement.

Evidence it needs
    Lookups and hits beside ``prompt_tokens_by_source`` (0.16+), or lookups beside prompt tokens,
    and the version.

How it decides
    By the counting part of a fall (attribution), and by falls that only the raw counters show. Two
    definitions of the rate whose falls differ by 0.05 or more are certain; lookups of more than 1.2
    per prompt token make the counter no hit rate, which is reported however small its part is.

When it is silent
    Both definitions agree, or lookups per prompt token stay near one.

False positives
    In a full pool the counters are inflated and real hits may be lost as well: both are reported.

What to do
    Chart ``1 - local_compute / prompt_tokens`` instead; upgrade to 0.27 or later, where a lookup
    counts once per admission.

Versions
    Per scheduling attempt up to 0.26; resumed requests included up to 0.11.0; blocks up to 0.8.5.

References
    Metrics reference 3.1; diagnosis reference, section 0; recording b- of 0.11.2.
"""

from dataclasses import dataclass

from forensics.attribution import Figures
from forensics.catalog.messages import Message
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity


@dataclass(frozen=True, slots=True)
class CountingArtifactParams(Params):
    """Thresholds.

    Attributes:
        least_gap: difference of two definitions that counts; 0.05 is the label rule of
            diagnosis.md, section 0.
        inflated: lookups per prompt token above which the counter is no hit rate; same source.
        least_share: below this share of the fall the rule is silent unless the counters are off
            beyond doubt (guess).
    """

    least_gap: float = 0.05
    inflated: float = 1.2
    least_share: float = 0.1


class CountingArtifact:
    """The rule. See the module docstring."""

    id = "PC107"
    name = "counting-artifact"
    title = "The number changed, not the cache"
    severity = Severity.INFO
    needs = ("queries", "prompt_tokens")
    scope = "episode"

    def __init__(self, params: CountingArtifactParams | None = None) -> None:
        self.params = params or CountingArtifactParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall of the rate, or of the raw counters only."""
        if case.episode is None or case.attribution is None or case.before is None:
            return None
        share = case.attribution.share("counting")
        by_source = case.timeline.has("cached_tokens")
        seen = self._is_seen(case, case.before, by_source)
        if share < self.params.least_share and not seen:
            return None
        shown: list[Exhibit] = [
            *compare(case, "counter_rate"),
            *compare(case, "hit_rate", note=Message("note.true_rate")),
            *compare(case, "queries_per_prompt_token", note=Message("note.inflated")),
        ]
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=share * (0.95 if by_source else 0.6),
            certain=seen,
            severity=self.severity,
            summary=Message(
                f"PC107.{_how(case, by_source)}",
                {
                    "engine": case.timeline.engine,
                    "before": case.before.counter_rate,
                    "after": case.after.counter_rate,
                    "true_before": case.before.hit_rate,
                    "true_after": case.after.hit_rate,
                    "queries": case.after.queries_per_prompt_token,
                    "share": share,
                    "preemptions": max(case.before.preemptions or 0.0, case.after.preemptions or 0),
                },
            ),
            share=share,
            onset=case.episode.onset,
            end=case.episode.end if case.episode.recovered else None,
            for_=tuple(shown),
            against=compare(case, "ttft_s", "saturated"),
            actions=(
                Action(Message("PC107.upgrade"), Message("PC107.chart_effect"))
                if case.epoch.before(0, 16) is True
                else Action(
                    Message("PC107.chart"),
                    Message("PC107.chart_effect"),
                    'sum(rate(vllm:prompt_tokens_by_source_total{source="local_cache_hit"}[5m]))'
                    " / sum(rate(vllm:prompt_tokens_total[5m]))",
                ),
            ),
            missing=() if by_source else ("prompt_tokens_by_source",),
        )

    def _is_seen(self, case: Case, before: Figures, by_source: bool) -> bool:
        """Tell whether the counters are off beyond doubt, however little of the fall that makes."""
        after = case.after
        if (after.queries_per_prompt_token or 0.0) > self.params.inflated:
            return case.epoch.before(0, 27) is not False
        gap = _fall(before.counter_rate, after.counter_rate)
        true = _fall(before.hit_rate, after.hit_rate) if by_source else None
        return gap is not None and true is not None and abs(gap - true) >= self.params.least_gap


def _fall(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after


def _how(case: Case, by_source: bool) -> str:
    """Name the sentence: two definitions that disagree, resumed requests, or repeated lookups."""
    if by_source:
        return "summary"
    preempted = case.after.preemptions or (case.before and case.before.preemptions)
    if preempted and case.epoch.before(0, 11, 1) is True:
        return "resumed"
    return "bounded"
