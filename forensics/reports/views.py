"""Analysis → the small records that templates show: figures already put into words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forensics.analysis import Analysis, BeforeAfter
from forensics.catalog.messages import Message, say_number
from forensics.ceiling.records import Bound, Ceiling, GapRow, Input
from forensics.reports.wording import figure, limits, named, word


@dataclass(frozen=True, slots=True)
class Row:
    """A figure before and after, in words."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class BoundView:
    """A bound with its figure in words."""

    name: str
    value: float | None
    text: str
    formula: str
    inputs: Mapping[str, Input]
    steps: Sequence[str]
    applies_to: str
    refused: Message | None


@dataclass(frozen=True, slots=True)
class CeilingView:
    """A ceiling with its figures in words; `no_change`: the present setting stays."""

    engine: str
    gpu: str | None
    model: str | None
    max_num_seqs: bool
    limit_text: str
    value: float
    current: int | None
    no_change: bool
    admission_text: str | None
    binding_bound: str | None
    bounds: Sequence[BoundView]
    gap_table: Sequence[GapRow]
    confidence: str
    notes: Sequence[Message]
    refused: Message | None


def ceiling(item: Ceiling) -> CeilingView:
    """Put a ceiling into words."""
    limit, admission = item.max_num_seqs, item.admission_limit
    return CeilingView(
        engine=item.engine,
        gpu=item.gpu,
        model=item.model,
        max_num_seqs=limit is not None,
        limit_text="–" if limit is None else limits(limit.value, limit.low, limit.high),
        value=0.0 if limit is None else limit.value,
        current=item.current,
        no_change=item.no_change,
        admission_text=(
            None if admission is None else limits(admission.value, admission.low, admission.high)
        ),
        binding_bound=item.binding_bound,
        bounds=[_bound(bound) for bound in item.bounds],
        gap_table=item.gap_table,
        confidence=item.confidence,
        notes=item.notes,
        refused=item.refused,
    )


def _bound(bound: Bound) -> BoundView:
    if bound.value is None:
        text = "–"
    else:
        low = bound.value if bound.low is None else bound.low
        high = bound.value if bound.high is None else bound.high
        text = limits(bound.value, low, high)
    return BoundView(
        bound.name,
        bound.value,
        text,
        bound.formula,
        bound.inputs,
        bound.steps,
        bound.applies_to,
        bound.refused,
    )


def impact(analysis: Analysis, lang: str) -> Sequence[Row]:
    """Put the impact into rows of words; what was not observed is left out."""
    seen = analysis.impact
    rows: list[Row] = []
    if seen.requests is not None:
        rows.append(Row(word("label.requests", lang), "", say_number(seen.requests)))
    pairs: list[tuple[str, BeforeAfter | None, str]] = [
        (word("label.ttft", lang), seen.ttft_s, "s"),
        (word("label.e2e", lang), seen.e2e_s, "s"),
        (word("label.throughput", lang), seen.throughput_tok_s, ""),
    ]
    pairs += [(f"· {named('part', k, lang)}", v, "s") for k, v in seen.latency_parts_s.items()]
    rows += [
        Row(label, figure(pair.before, unit, lang), figure(pair.after, unit, lang))
        for label, pair, unit in pairs
        if pair is not None
    ]
    if seen.grew is not None:
        rows.append(Row(word("label.grew_most", lang), "", named("part", seen.grew, lang)))
    if seen.slo_minutes is not None:
        rows.append(Row(word("label.slo_minutes", lang), "", say_number(seen.slo_minutes)))
    return rows


def not_evaluated(analysis: Analysis) -> Sequence[tuple[str, str]]:
    """Group the rules that could not be asked by what they would have needed."""
    grouped: dict[str, dict[str, None]] = {}
    for item in analysis.not_evaluated:
        grouped.setdefault(", ".join(item.missing), {})[item.rule_id] = None
    return [(", ".join(rules), missing) for missing, rules in grouped.items()]
