"""PC103 prefix-diversity-loss: the traffic itself shares fewer prefixes; the pool had room.

What it detects
    A fall of the hit rate because prompts repeat less: a time stamp or user id at the head of the
    prompt, a new template, single-turn instead of multi-turn traffic, longer private parts, one-off
    batch traffic that joined, a router that scatters sessions.

Why it matters
    No setting of the server brings these hits back; shrinking the batch only costs throughput.

Evidence it needs
    The interval hit rate and token counters; prompts or token ids in request lines decide exactly.

How it decides
    By the diversity part of the fall (attribution): request contents first; else usage per running
    request that rises as sharing among running requests is lost, longer prompts with unchanged hit
    tokens, a fall at once with load unchanged, and hits that go to exactly zero.

When it is silent
    Less than a tenth of the fall is diversity; hits vanished and the traffic is proven to go on
    repeating (a restart brought them back, a replica of the same model kept them).

False positives
    A suddenly larger set of live prefixes also falls in one step with load unchanged: from counters
    alone that is not decidable, and the weight stays middling. Hits that vanish in a roomy pool
    while nothing else changes may be a cache that stopped working: then it stays undecided.

What to do
    Put stable text first in the prompt template; keep sessions on their replica; give one-off
    traffic its own pool.

Versions
    All with prefix caching.

References
    Recordings c-, g-, g2- of the corpus; diagnosis reference 1.3 and section 2.
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.actions import fix_template, larger_batch, potential, probe, route_by_prefix
from rules.exhibits import compare, has_risen, has_room, is_alike, sides
from rules.interface import Case, Exhibit, Opinion, Params, Severity
from rules.prefix_cache.strength import UNDECIDED, lacking, strength
from rules.repeats import DOUBT, lookups_may_fail, nothing_else_changed, still_repeats
from rules.testimony import spoken
from rules.workload import ONE_OFF, workload


@dataclass(frozen=True, slots=True)
class DiversityLossParams(Params):
    """Thresholds.

    Attributes:
        least_share: below this share of the fall the rule is silent; 0.1 is the resolution of the
            attribution (guess).
    """

    least_share: float = 0.1


class DiversityLoss:
    """The rule. See the module docstring."""

    id = "PC103"
    name = "prefix-diversity-loss"
    title = "The traffic itself shares fewer prefixes"
    severity = Severity.WARNING
    needs = ("hit_rate",)
    scope = "episode"

    def __init__(self, params: DiversityLossParams | None = None) -> None:
        self.params = params or DiversityLossParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall by its diversity part."""
        if case.episode is None or case.attribution is None or case.epoch.prefix_caching is False:
            return None
        share = case.attribution.share("diversity")
        if share < self.params.least_share or still_repeats(case, case.episode) is not None:
            return None
        exact = case.attribution.basis == "exact"
        # Nothing but the hits changed: a cache that stopped working looks the same.
        doubt = not exact and lookups_may_fail(case, case.episode) and nothing_else_changed(case)
        decided = case.attribution.decided and not doubt
        weight = strength(case.attribution, "diversity")
        heard, contrary = spoken(case, "diversity")
        split, shared = sides(case, ("usage_per_running",), has_risen, Message("note.sharing_lost"))
        room, full = sides(case, ("usage_max",), has_room, Message("note.pool_had_room"))
        steady, moved = sides(
            case, ("requests_per_s", "running"), is_alike, Message("note.load_unchanged")
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=min(UNDECIDED, weight) if doubt else weight,
            severity=self.severity,
            summary=Message(
                f"PC103.{_said(case.after.usage_max, room) if decided else 'undecided'}",
                {
                    "engine": case.timeline.engine,
                    "before": case.episode.before,
                    "after": case.episode.level,
                    "usage": case.after.usage_max,
                },
            ),
            share=share * (1.0 - DOUBT) if doubt else share,
            onset=case.episode.onset,
            end=case.episode.end if case.episode.recovered else None,
            for_=(
                *compare(case, "hit_rate", "hit_per_request", "miss_per_request"),
                *split,
                *room,
                *steady,
                *workload(case),
                *heard,
            ),
            against=(
                *compare(case, "residence_s", "preemptions", "saturated"),
                *shared,
                *full,
                *moved,
                *contrary,
            ),
            actions=(
                fix_template(1),
                route_by_prefix(case, 2),
                probe(3),
                *((larger_batch(4),) if case.episode.level <= ONE_OFF else ()),
            ),
            would_decide=Message("decide.repeat") if doubt else potential(case),
            missing=("request contents or a second replica",) if doubt else lacking(case),
        )


def _said(usage_max: float | None, room: tuple[Exhibit, ...]) -> str:
    """Say of the pool what was seen of it."""
    if usage_max is None:
        return "unwatched"
    return "summary" if room else "full"
