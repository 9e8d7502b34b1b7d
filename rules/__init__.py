"""Case → opinion: one cause, one file. The explicit list of rules, and what each was missing."""

from forensics.timeline import EngineTimeline
from rules.engine.engine_crash import EngineCrash
from rules.engine.engine_stall import EngineStall
from rules.interface import Case, Opinion, Rule
from rules.kv_capacity.capacity_queueing import CapacityQueueing
from rules.kv_capacity.long_context_hog import LongContextHog
from rules.kv_capacity.pool_too_small import PoolTooSmall
from rules.kv_capacity.preemption_thrash import PreemptionThrash
from rules.prefix_cache.caching_disabled import CachingDisabled
from rules.prefix_cache.cold_cache import ColdCache
from rules.prefix_cache.counting_artifact import CountingArtifact
from rules.prefix_cache.diversity_loss import DiversityLoss
from rules.prefix_cache.eviction_pressure import EvictionPressure
from rules.prefix_cache.low_reuse import LowReuse
from rules.prefix_cache.preemption_cliff import PreemptionCliff
from rules.prefix_cache.stuck_cache import StuckCache
from rules.prefix_cache.sub_block_prefix import SubBlockPrefix
from rules.scheduling.client_aborts import ClientAborts
from rules.scheduling.compute_plateau import ComputePlateau
from rules.scheduling.overload_shedding import OverloadShedding
from rules.scheduling.prefill_bound import PrefillBound
from rules.scheduling.replica_imbalance import ReplicaImbalance
from rules.scheduling.seat_limit import SeatLimit

__all__ = ["RULES", "Case", "Opinion", "Rule", "missing_for"]

RULES: tuple[Rule, ...] = (
    PreemptionCliff(),
    EvictionPressure(),
    DiversityLoss(),
    ColdCache(),
    CachingDisabled(),
    SubBlockPrefix(),
    CountingArtifact(),
    LowReuse(),
    StuckCache(),
    CapacityQueueing(),
    PreemptionThrash(),
    LongContextHog(),
    PoolTooSmall(),
    SeatLimit(),
    ComputePlateau(),
    PrefillBound(),
    ReplicaImbalance(),
    OverloadShedding(),
    ClientAborts(),
    EngineStall(),
    EngineCrash(),
)


def missing_for(rule: Rule, timeline: EngineTimeline) -> tuple[str, ...]:
    """Name what a rule needs and the evidence does not have.

    Args:
        rule: the rule.
        timeline: the engine it is to be asked about.
    """
    missing: list[str] = []
    for need in rule.needs:
        choices = need.split("|")
        if not any(_known(choice, timeline) for choice in choices):
            missing.append(" or ".join(choice.removeprefix("fact:") for choice in choices))
    return tuple(missing)


def _known(choice: str, timeline: EngineTimeline) -> bool:
    if choice.startswith("event:"):
        return True
    if choice.startswith("fact:"):
        name = choice.removeprefix("fact:")
        return any(getattr(epoch, name, None) is not None for epoch in timeline.diary.epochs)
    return timeline.has(choice)
