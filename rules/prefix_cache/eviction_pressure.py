"""PC102 eviction-pressure: cached blocks are recycled before reuse, without preemption.

What it detects
    A fall of the hit rate because the reusable prefixes, or the churn between two uses of one,
    outgrew the free part of the pool, while running requests fit.

Why it matters
    Usage looks low, so nobody thinks of capacity: usage counts referenced blocks only, and LRU
    thrash happens at 15 % usage.

Evidence it needs
    The interval hit rate, usage and token counters; request contents, block histograms or the
    per-request distribution of computed tokens make it certain.

How it decides
    By the capacity part of the fall (attribution) as far as the preemption regime is absent; where
    the pool was full and nothing counts preemptions, that is open. From counters alone capacity and
    diversity can often not be told apart. Then the weight stays middling and the verdict abstains.

When it is silent
    The preemption regime explains the fall, or less than a tenth of the fall is capacity; or not
    one of several requests at a time hits anything with room in the pool: requests that run
    together pin what they share, so eviction cannot take everything.

False positives
    A falling residence time is no evidence: lost hits are recomputed, and recomputing fills the
    pool, whatever lost them.

What to do
    Admit fewer live sessions, route sessions and tenants to one home, enlarge the pool, or move
    one-off batch traffic away. A smaller max_num_seqs alone does not help.

Versions
    All with prefix caching. --kv-cache-metrics (0.12+) adds block histograms.

References
    Recordings d-, d2-, h2- of the corpus; diagnosis reference 1.2 and "what cannot be separated".
"""

from dataclasses import dataclass

from forensics.attribution.physics import SATURATED_SHARE
from forensics.catalog.messages import Message
from forensics.episodes import Episode
from rules.actions import admission_limit, larger_pool, probe, route_by_prefix
from rules.exhibits import compare
from rules.interface import Case, Opinion, Params, Severity
from rules.prefix_cache.strength import UNDECIDED, lacking, strength
from rules.regime import is_uncounted, regime_share
from rules.repeats import hits_vanished
from rules.testimony import spoken
from rules.workload import workload


@dataclass(frozen=True, slots=True)
class EvictionPressureParams(Params):
    """Thresholds.

    Attributes:
        least_share: below this share of the fall the rule is silent; 0.1 is the resolution of the
            attribution (guess).
    """

    least_share: float = 0.1


class EvictionPressure:
    """The rule. See the module docstring."""

    id = "PC102"
    name = "eviction-pressure"
    title = "Cached blocks are recycled before reuse, without preemption"
    severity = Severity.WARNING
    needs = ("hit_rate",)
    scope = "episode"

    def __init__(self, params: EvictionPressureParams | None = None) -> None:
        self.params = params or EvictionPressureParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall by its capacity part outside the preemption regime."""
        if case.episode is None or case.attribution is None or case.epoch.prefix_caching is False:
            return None
        calm = 1.0 - regime_share(case)
        share = case.attribution.share("capacity") * calm
        if share < self.params.least_share or self._ruled_out(case, case.episode):
            return None
        decided, uncounted = case.attribution.decided, is_uncounted(case)
        weight = calm * strength(case.attribution, "capacity")
        heard, contrary = spoken(case, "capacity")
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=min(UNDECIDED, weight) if uncounted else weight,
            severity=self.severity,
            summary=Message(
                "PC102.summary" if decided else "PC102.undecided",
                {
                    "engine": case.timeline.engine,
                    "before": case.episode.before,
                    "after": case.episode.level,
                    "residence": case.after.residence_s,
                    "usage": case.after.usage,
                },
            ),
            share=share,
            onset=case.episode.onset,
            end=case.episode.end if case.episode.recovered else None,
            for_=(
                *compare(case, "hit_rate", "hit_per_request"),
                *compare(case, "residence_s", note=Message("note.residence")),
                *compare(case, "block_idle_s", "block_reuse_s", note=Message("note.blocks")),
                *compare(case, "usage", note=Message("note.usage_pinned")),
                *workload(case),
                *heard,
            ),
            against=(*compare(case, "prompt_len", "usage_per_running"), *contrary),
            actions=(
                admission_limit(case, 1),
                route_by_prefix(case, 2),
                *larger_pool(case, 3),
                probe(4),
            ),
            would_decide=Message("decide.probe"),
            missing=(
                *lacking(case),
                *(("preemptions",) if uncounted else ()),
            ),
        )

    def _ruled_out(self, case: Case, episode: Episode) -> bool:
        full = case.after.saturated or 0.0
        return full < SATURATED_SHARE and hits_vanished(case, episode)
