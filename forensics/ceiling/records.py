"""The ceiling's records: bounds with formula, inputs, sources and an interval; a recommendation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forensics.catalog.messages import Message
from forensics.evidence import Place

NO_CHANGE = "ceiling.note.no_change"


@dataclass(frozen=True, slots=True)
class Input:
    """One quantity of a formula: its value, unit, and where it came from."""

    value: float | str
    unit: str
    source: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bound:
    """One upper bound on running requests (or live sessions for `C_keep`).

    Attributes:
        name: formula, B_safe, B_exh, C_keep, B_slo, B_90, observed, engine_limit, …
        value / low / high: requests; None when it could not be computed (`refused` says why).
        formula: as text, in the symbols of `inputs`.
        steps: the arithmetic with numbers put in, one line each.
        applies_to: "running" or "live".
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    formula: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    applies_to: str = "running"
    refused: Message | None = None


@dataclass(frozen=True, slots=True)
class GapRow:
    """If sessions come back within `gap_s`, the pool carries `clients` live sessions."""

    gap_s: float
    clients: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The recommendation for one engine.

    Attributes:
        engine: name; "" when computed without an incident.
        gpu / model: what it was computed for, as shown to people; None when unknown.
        max_num_seqs: recommended batch limit; None when refused.
        current: the setting in force, when known.
        admission_limit: live sessions to admit where hits matter; None when it does not apply
            or cannot be identified.
        binding_bound: name of the bound that decided.
        bounds: all bounds, computed or refused.
        gap_table: for an unknown reuse gap.
        confidence: "high", "medium" or "low".
        notes: sentences that belong to the answer (max_num_seqs alone does not restore hits, …).
        refused: why no number is given.
    """

    engine: str
    gpu: str | None
    model: str | None
    max_num_seqs: Limit | None
    current: int | None
    admission_limit: Limit | None
    binding_bound: str | None
    bounds: tuple[Bound, ...]
    gap_table: tuple[GapRow, ...] = ()
    confidence: str = "low"
    notes: tuple[Message, ...] = ()
    refused: Message | None = None

    @property
    def no_change(self) -> bool:
        """Whether the answer is to leave the setting: an interval that holds it is not enough."""
        return any(note.key == NO_CHANGE for note in self.notes)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One setting of a sweep; None where it was not measured."""

    setting: float
    hit_rate: float | None = None
    ttft_p50_s: float | None = None
    ttft_p99_s: float | None = None
    throughput_tok_s: float | None = None
    preemptions: float | None = None
    kv_usage: float | None = None
    requests: float | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Several batch sizes compared; breaks lie between two settings, None when absent."""

    setting_name: str
    rows: tuple[SweepRow, ...]
    hit_break: tuple[float, float] | None = None
    throughput_peak: tuple[float, float] | None = None
    largest_within_slo: float | None = None
    notes: tuple[Message, ...] = ()
