"""A plan in plain numbers → the same record an analysis gives, for the same reports."""

from dataclasses import replace
from math import floor

from forensics.capacity.bounds import Interval
from forensics.capacity.plan import Plan, Wanted, ceiling_for
from forensics.catalog.messages import Message
from forensics.ceiling.records import Bound, Ceiling, GapRow, Input, Limit

SAME_WITHIN = 0.05
"""Candidates whose limits differ by less are not told apart in the answer."""


def ceiling_of(wanted: Wanted) -> Ceiling:
    """Compute the ceiling of what is asked for.

    Args:
        wanted: GPU, model, lengths and targets.
    """
    plan = ceiling_for(wanted)
    return Ceiling(
        engine="",
        gpu=" or ".join(gpu.name for gpu in plan.gpus) or wanted.gpu,
        model=plan.model.name if plan.model else _text(wanted),
        max_num_seqs=_whole(plan.limit),
        current=None,
        admission_limit=_whole(plan.sessions),
        binding_bound=plan.binding,
        bounds=tuple(
            Bound(
                bound.name,
                bound.value,
                bound.low,
                bound.high,
                bound.formula,
                {name: Input(q.value, q.unit, q.source) for name, q in bound.inputs.items()},
                bound.steps,
                bound.applies_to,
            )
            for bound in plan.bounds
        ),
        gap_table=tuple(GapRow(gap, clients) for gap, clients in plan.gap_table),
        confidence=_confidence(wanted, plan),
        notes=(*plan.notes, *_candidates(wanted, plan)),
        refused=plan.refused,
    )


def _candidates(wanted: Wanted, plan: Plan) -> list[Message]:
    notes = []
    for gpu in plan.gpus[1:]:
        other = ceiling_for(replace(wanted, gpu=gpu.name))
        if other.limit is None or plan.limit is None:
            continue
        if abs(other.limit.value - plan.limit.value) > SAME_WITHIN * plan.limit.value:
            notes.append(
                Message(
                    "ceiling.note.for_candidate",
                    {"gpu": gpu.name, "batch": other.limit.value, "bound": other.binding},
                )
            )
    return notes


def _confidence(wanted: Wanted, plan: Plan) -> str:
    # "high" needs measured demand: a plan stands on lengths somebody stated.
    known = wanted.shared_prefix is not None and wanted.output is not None
    return "medium" if known and plan.limit is not None else "low"


def _whole(interval: Interval | None) -> Limit | None:
    if interval is None:
        return None
    value, low, high = (max(1, floor(v)) for v in (interval.value, interval.low, interval.high))
    return Limit(value, low, high)


def _text(wanted: Wanted) -> str | None:
    return wanted.model if isinstance(wanted.model, str) else None
