"""Bounds → the recommendation: a batch limit, and where hits matter an admission limit.

``B_rec = floor(min(B_safe, B_slo, 9 B_half))``, not below 1. Lowering `max_num_seqs` moves requests
from running to waiting; waiting sessions need their history in the pool just as long. So the batch
limit stops preemption and bounds latency, and is never said to bring hits back: that takes a limit
on live sessions, routing, or a larger pool.
"""

from dataclasses import dataclass
from math import floor, isfinite

from forensics.catalog.messages import Message
from forensics.ceiling.bounds import (
    engine_bounds,
    latency_bounds,
    observed_bound,
    pool_bounds,
    pool_units,
    step_time,
)
from forensics.ceiling.keep import Kept, kept_sessions
from forensics.ceiling.measure import Measured, measure
from forensics.ceiling.records import Bound, Ceiling, Limit
from forensics.ceiling.target import Target, target_of
from forensics.config import Options
from forensics.diary import Epoch
from forensics.timeline import EngineTimeline
from forensics.verdict import HEALTHY, INSUFFICIENT, Verdict

BINDING = ("B_safe", "B_slo", "B_90", "engine_limit")
"""The bounds a batch has to keep; the others are for comparison."""
REUSE_MATTERS = 0.2
"""Below this hit rate at its best, the cache is not the lever (docs/ceiling.md)."""
EXHAUSTED = frozenset(("preemption-cliff", "preemption-thrash", "kv-capacity-queueing"))
EVICTED = EXHAUSTED | {"eviction-pressure"}
SEATS_BIND = frozenset(("seat-limit", "low-reuse-workload"))
"""Causes for which a larger batch is the remedy."""
ENOUGH_S, ENOUGH_REQUESTS = 1800.0, 200.0
"""Data needed for high confidence: half an hour, 200 finished requests."""
SAME_WITHIN = 0.05
"""Candidates whose limits differ by less are not told apart in the answer."""


@dataclass(frozen=True, slots=True)
class _Answer:
    limit: Limit | None
    binding: str | None


def recommend(
    timeline: EngineTimeline, epoch: Epoch, verdict: Verdict | None, options: Options
) -> Ceiling:
    """Recommend the limits of one engine.

    Args:
        timeline: the engine's.
        epoch: the epoch to judge (that of the incident, or the last).
        verdict: what is held to be true of the whole input; None when not asked.
        options: what the operator said: GPU, model, targets.
    """
    measured = measure(timeline, epoch, options)
    target = target_of(epoch, options)
    step = step_time(measured, target, target.gpus[0] if target.gpus else None)
    bounds = pool_bounds(measured, target)
    bounds += latency_bounds(step, options.slo_itl_s)
    seen = observed_bound(measured)
    if seen is not None:
        bounds.append(seen)
    bounds += engine_bounds(target, epoch.max_num_batched_tokens)
    cause = verdict.cause if verdict is not None else None
    preempting = (measured.preemptions or 0.0) > 0
    matters = _hits_matter(measured, epoch)
    shared = measured.usage_line.intercept if measured.usage_line else 0.0
    tokens = float(target.pool.tokens) if target.pool else None
    kept = kept_sessions(timeline, measured, tokens, shared * (tokens or 0.0))
    notes = list(target.notes)
    answer = _answer(bounds, seen, notes)
    refused = None
    if answer.limit is None:
        refused = target.pool_refused or Message("ceiling.refused.no_data", {})
    else:
        answer = _against_current(answer, target.current, cause, preempting, notes)
    if step is not None and step.source == "roofline":
        notes += _other_candidates(measured, target, bounds, options, answer)
    admission = None
    if matters:
        bounds.append(kept.bound)
        if cause in EVICTED or preempting:
            notes.append(Message("ceiling.note.seqs_do_not_restore", {}))
        admission = _admission(kept, measured, notes)
    elif measured.best_hit_rate is not None:
        notes.append(Message("ceiling.note.no_reuse", {"rate": measured.best_hit_rate}))
    if options.slo_ttft_s is not None:
        notes.append(Message("ceiling.note.ttft_needs_admission", {"target": options.slo_ttft_s}))
    confidence, lacking = _confidence(measured, target, kept, matters)
    if confidence == "low" and answer.limit is not None:
        notes += [Message(f"ceiling.note.low_{reason}", {}) for reason in lacking]
    return Ceiling(
        engine=timeline.engine,
        gpu=target.gpu_text,
        model=target.model_text,
        max_num_seqs=answer.limit,
        current=target.current,
        admission_limit=admission,
        binding_bound=answer.binding,
        bounds=tuple(bounds),
        gap_table=kept.table if matters else (),
        confidence=confidence,
        notes=tuple(notes),
        refused=refused,
    )


def limit_of(bounds: list[Bound]) -> tuple[Limit | None, str | None]:
    """Return the smallest of the binding bounds as a limit, and its name."""
    named = [bound for bound in bounds if bound.name in BINDING]
    chosen = [bound for bound in named if bound.value is not None and isfinite(bound.value)]
    if not chosen:
        return None, None
    least = min(chosen, key=lambda bound: bound.value if bound.value is not None else 0.0)
    value = max(1, floor(min(b.value for b in chosen if b.value is not None)))
    lows = [b.low for b in chosen if b.low is not None and isfinite(b.low)]
    low = max(1, floor(min([value, *lows])))
    # A fit whose slope may be zero bounds nothing from above: the others' upper ends count.
    highs = [b.high for b in chosen if b.high is not None and isfinite(b.high)]
    high = max(value, floor(min(highs, default=value)))
    return Limit(value, min(low, value), high), least.name


def _answer(bounds: list[Bound], seen: Bound | None, notes: list[Message]) -> _Answer:
    safe = next((b for b in bounds if b.name == "B_safe" and b.value is not None), None)
    limit, name = limit_of(bounds)
    most = seen.value if seen is not None else None
    if safe is not None or most is None or (limit is not None and limit.value <= most):
        return _Answer(limit, name)
    # Without any demand figure, what ran without preemption is the one number there is.
    notes.append(Message("ceiling.note.observed_only", {"batch": most}))
    value = max(1, floor(most))
    return _Answer(Limit(value, value, value), "observed")


def _against_current(
    answer: _Answer,
    current: int | None,
    cause: str | None,
    preempting: bool,
    notes: list[Message],
) -> _Answer:
    limit = answer.limit
    if limit is None or current is None:
        return answer
    wrong = preempting or cause in EXHAUSTED
    if wrong and limit.value < current:
        notes.append(Message("ceiling.note.stops_preemption", {"batch": limit.value}))
    if limit.value > current and cause in SEATS_BIND:
        # Something is wrong, and more seats mend it: an interval that holds the present setting
        # does not keep it, and neither does a preemption from before or after the queue.
        notes.append(Message("ceiling.note.raise", {"current": current, "batch": limit.value}))
        return answer
    if limit.value >= current:
        # Not above what runs now: nothing says that more would be served better.
        notes.append(Message("ceiling.note.no_change", {"current": current}))
        return _Answer(
            Limit(current, min(limit.low, current), max(limit.high, current)), answer.binding
        )
    if not wrong and limit.low <= current <= limit.high:
        notes.append(Message("ceiling.note.no_change", {"current": current}))
        return _Answer(Limit(current, limit.low, limit.high), answer.binding)
    if not wrong and cause in (HEALTHY, INSUFFICIENT, None):
        notes.append(Message("ceiling.note.headroom_only", {"current": current}))
    return answer


def _other_candidates(
    measured: Measured, target: Target, bounds: list[Bound], options: Options, answer: _Answer
) -> list[Message]:
    notes = []
    pool_side = [bound for bound in bounds if bound.name in ("B_safe", "engine_limit")]
    for gpu in target.gpus[1:]:
        step = step_time(measured, target, gpu)
        other, name = limit_of(pool_side + latency_bounds(step, options.slo_itl_s))
        if other is None or answer.limit is None:
            continue
        if abs(other.value - answer.limit.value) > SAME_WITHIN * answer.limit.value:
            notes.append(
                Message(
                    "ceiling.note.for_candidate",
                    {"gpu": gpu.name, "batch": other.value, "bound": name},
                )
            )
    return notes


def _hits_matter(measured: Measured, epoch: Epoch) -> bool:
    if epoch.prefix_caching is False or measured.best_hit_rate is None:
        return False
    return measured.best_hit_rate >= REUSE_MATTERS


def _admission(kept: Kept, measured: Measured, notes: list[Message]) -> Limit | None:
    if kept.residence is not None:
        notes.append(
            Message(
                "ceiling.note.residence",
                {
                    "point": kept.residence.point_s,
                    "low": kept.residence.low_s,
                    "high": kept.residence.high_s,
                },
            )
        )
    bound = kept.bound
    if bound.value is None or bound.low is None or bound.high is None:
        if kept.table:
            notes.append(Message("ceiling.note.gap_unknown", {}))
        return None
    live = (measured.running or 0.0) + (measured.waiting or 0.0)
    limit = Limit(max(1, floor(bound.value)), max(1, floor(bound.low)), max(1, floor(bound.high)))
    notes.append(Message("ceiling.note.admission", {"sessions": limit.value, "served": live}))
    return limit


def _confidence(
    measured: Measured, target: Target, kept: Kept, matters: bool
) -> tuple[str, list[str]]:
    lacking = []
    if measured.usage_line is None:
        lacking.append("sharing")
    if matters and kept.gap is None:
        lacking.append("gap")
    if target.pool is None:
        lacking.append("pool")
    if lacking:
        return "low", lacking
    enough = measured.span_s >= ENOUGH_S and (measured.finished or 0.0) >= ENOUGH_REQUESTS
    stated = target.pool is not None and target.pool.stated
    sharp = not matters or (kept.gap is not None and kept.gap.sharp)
    return ("high" if enough and stated and sharp else "medium"), lacking


__all__ = ["limit_of", "pool_units", "recommend"]
