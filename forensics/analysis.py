"""The records of a result: everything a report may show, as plain values, all in one place.

Reports render these and compute nothing. `forensics.reports.json` writes them in the shape of the
published schema; times are UTC seconds here and ISO 8601 there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forensics.catalog.messages import Message
from forensics.ceiling.records import Ceiling, Sweep
from forensics.coverage import KindBytes
from forensics.verdict import Verdict

SCHEMA_VERSION = "1.0"


# An incident is drawn with this many times its length on either side, and never more than this
# many times enlarged.
_AROUND = 3.0
_FOCUSED = 8.0


@dataclass(frozen=True, slots=True)
class Where:
    """A place for people: file and line for logs, file, series and time for metrics.

    `text` is the raw log line (escaped by whoever shows it), None for metrics or when confidential.
    """

    file: str
    line: int | None = None
    series: str | None = None
    time: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Evidenced:
    """An exhibit with its place resolved. See `rules.interface.Exhibit`."""

    signal: str
    before: float | str | None
    after: float | str | None
    unit: str
    source: Where | None
    note: Message | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """An action: what to do, its expected effect and limits, the command in its version's words."""

    text: Message
    effect: Message
    command: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause found present on one engine."""

    rule_id: str
    cause: str
    severity: str
    confidence: float
    engine: str
    onset: tuple[float, float] | None
    end: float | None
    summary: Message
    share: float | None = None
    exhibits: tuple[Evidenced, ...] = ()
    against: tuple[Evidenced, ...] = ()
    actions: tuple[Advice, ...] = ()
    would_decide: Message | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a fall in hit-rate points, with its interval."""

    part: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A fall of the hit rate and its parts; `basis` says how exact they are."""

    engine: str
    episode: int
    onset: tuple[float, float]
    before: float
    after: float
    parts: tuple[Share, ...]
    decided: bool
    basis: str


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A figure in the baseline and in the incident; None where it was not observed."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Impact:
    """Who was hurt and how much; seconds, tokens per second, requests.

    `grew` names the part of the requests' time that grew most: queue, prefill or decode.
    """

    requests: float | None = None
    ttft_s: BeforeAfter | None = None
    e2e_s: BeforeAfter | None = None
    throughput_tok_s: BeforeAfter | None = None
    latency_parts_s: Mapping[str, BeforeAfter] = field(default_factory=dict)
    slo_minutes: float | None = None
    grew: str | None = None


@dataclass(frozen=True, slots=True)
class GpuView:
    """What is known of the accelerator, for a reader."""

    name: str | None
    candidates: tuple[str, ...]
    memory_bytes: int | None
    source: str | None


@dataclass(frozen=True, slots=True)
class PoolView:
    """The KV pool as stated."""

    tokens: int | None
    blocks: int | None
    block_size: int | None
    source: str | None


@dataclass(frozen=True, slots=True)
class EpochView:
    """One process of an engine; `config` holds the settings that matter, None = not known."""

    start: float | None
    end: float | None
    vllm_version: str | None
    generation: str | None
    model: str | None
    gpu: GpuView
    config: Mapping[str, int | float | str | bool | None]
    kv_pool: PoolView


@dataclass(frozen=True, slots=True)
class EngineView:
    """One engine and its epochs."""

    engine: str
    instance: str | None
    epochs: tuple[EpochView, ...]


@dataclass(frozen=True, slots=True)
class ClockView:
    """How the clock of one source was put on UTC."""

    source: str
    offset_s: float | None
    time_zone: str | None
    year: int | None
    quality: str
    how: str


@dataclass(frozen=True, slots=True)
class Track:
    """A thinned signal for the charts: times (UTC s), values (None for gaps), `clock` its kind."""

    times: tuple[float, ...]
    values: tuple[float | None, ...]
    clock: str = "metrics"


@dataclass(frozen=True, slots=True)
class MarkView:
    """Something that happened at an instant, for the charts and the timeline table."""

    time: float
    kind: str
    text: str
    source: Where | None


@dataclass(frozen=True, slots=True)
class EngineTracks:
    """The thinned timeline of one engine."""

    engine: str
    step_s: float
    signals: Mapping[str, Track]
    marks: tuple[MarkView, ...]
    episodes: tuple[tuple[float, float, str], ...]
    """(start, end, signal) of each episode, to be shaded."""


@dataclass(frozen=True, slots=True)
class FileView:
    """What was read of one file, and how much of it was understood."""

    path: str
    format: str
    bytes: int
    lines: int
    matched: int
    ignored: int
    unknown: int
    damaged: int
    kind_bytes: KindBytes | None
    samples: int
    unknown_shapes: tuple[tuple[str, int], ...]
    damage: tuple[tuple[int, str], ...]
    """First damages as (line, or 0 for documents; reason)."""
    note: str | None


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not be asked, and what it would have needed."""

    rule_id: str
    engine: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """How one opinion entered the verdict, for `--explain`."""

    rule_id: str
    cause: str
    engine: str
    weight: float
    role: str
    """primary, contributing, runner-up, also-observed or rejected."""
    reason: Message


@dataclass(frozen=True, slots=True)
class Analysis:
    """All of a result."""

    tool_version: str
    window: tuple[float, float] | None
    verdict: Verdict
    findings: tuple[Finding, ...]
    decompositions: tuple[Decomposition, ...]
    impact: Impact
    engines: tuple[EngineView, ...]
    ceilings: tuple[Ceiling, ...]
    sweep: Sweep | None
    clocks: tuple[ClockView, ...]
    tracks: tuple[EngineTracks, ...]
    files: tuple[FileView, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    weighed: tuple[Weighed, ...] = ()
    reproduce: str | None = None
    """The command line that gives this result, input names as the operator gave them."""

    @property
    def watched(self) -> tuple[float, float] | None:
        """From the first to the last sample or stats line, UTC seconds.

        Narrower than `window`, to which a start-up line of days before belongs as well.
        """
        times = [
            time
            for tracks in self.tracks
            for track in tracks.signals.values()
            if track.times
            for time in (track.times[0], track.times[-1])
        ]
        return (min(times), max(times)) if times else self.window

    @property
    def focus(self) -> tuple[float, float] | None:
        """The part of what was watched in which a chart shows the incident.

        An eighth of the whole at least, so that thinned signals still have points enough.
        """
        whole, onset = self.watched, self.verdict.onset
        if whole is None or onset is None:
            return whole
        end = min(whole[1], self.verdict.end or whole[1])
        room = max(_AROUND * (end - onset[0]), 0.5 * (whole[1] - whole[0]) / _FOCUSED)
        start, end = max(whole[0], onset[0] - room), min(whole[1], end + room)
        return (start, end) if start < end else whole
