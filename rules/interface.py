"""What a rule, a case, an opinion and an exhibit are.

A rule knows one cause. It looks at a case and says how strongly the evidence speaks for and against
that cause, with exhibits. Rules do not know each other; `forensics.verdict` weighs their opinions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from forensics.attribution import Attribution, Figures
from forensics.catalog.messages import Message
from forensics.diary import Epoch
from forensics.episodes import Episode
from forensics.evidence import Place
from forensics.timeline import EngineTimeline


class Severity(StrEnum):
    """How bad a finding is: `info` to know, `warning` to plan for, `critical` to act on now."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A figure that speaks for or against a cause, and where it was read.

    Attributes:
        signal: canonical name of what was measured.
        before / after: the figure in the baseline and in the incident; None when not observed.
        unit: "ratio", "s", "requests", "tokens", "tokens/s", "1/min", "text", …
        place: where `after` was read (first line or sample that shows it).
        note: message key that says what the figure means for this cause.
    """

    signal: str
    before: float | str | None
    after: float | str | None
    unit: str
    place: Place | None
    note: Message | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What to do, what it will do, what it will not.

    `command` is a flag or query spelled as in the epoch's vLLM version; None when there is none.
    `rank`: 1 is tried first.
    """

    text: Message
    effect: Message
    command: str | None = None
    rank: int = 1


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rule thinks of one case, about its own cause only.

    Attributes:
        rule_id / cause: public and stable.
        weight: probability-like strength 0-1 of "this cause is present and explains what the case
            is about"; 0 when the evidence speaks against it.
        certain: the phenomenon itself is beyond doubt, however little of the fall it explains.
        share: part of the case's fall this cause accounts for (0-1); None when there is no fall.
        onset: (earliest, latest) UTC seconds of the cause's own beginning; None when unknown.
        end: UTC seconds; None when it goes on to the end of the data or is unknown.
        for_ / against: exhibits, the strongest first.
        would_decide: the cheapest measurement that would settle it when the weight is middling.
        missing: names of what was not observed and would have mattered.
    """

    rule_id: str
    cause: str
    weight: float
    severity: Severity
    summary: Message
    certain: bool = False
    share: float | None = None
    onset: tuple[float, float] | None = None
    end: float | None = None
    for_: tuple[Exhibit, ...] = ()
    against: tuple[Exhibit, ...] = ()
    actions: tuple[Action, ...] = ()
    would_decide: Message | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at: one engine, one episode (or the whole window), and its attribution.

    Attributes:
        timeline: the engine on UTC.
        epoch: the diary's epoch in which the episode lies (the last one for the whole window).
        episode: what changed; None for the case "the window as a whole".
        attribution: parts of the fall; None without a fall of the hit rate.
        window: UTC seconds that the case spans.
        before / after: figures of the episode's two windows; for the window as a whole `before` is
            None and `after` is the whole.
        slow: the largest lasting rise of a latency on the engine, in the episode or not; None when
            requests stayed as fast.
        fleet: all engines of the analysis, this one included.
    """

    timeline: EngineTimeline
    epoch: Epoch
    episode: Episode | None
    attribution: Attribution | None
    window: tuple[float, float]
    before: Figures | None
    after: Figures
    slow: Episode | None = None
    fleet: tuple[EngineTimeline, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Params:
    """Base of a rule's thresholds: every field carries its unit and source in the docstring."""


class Rule(Protocol):
    """One cause, one file. What it is called is written once in its class and never changed."""

    @property
    def id(self) -> str:
        """Stable id, e.g. PC101."""

    @property
    def name(self) -> str:
        """Stable kebab name, the cause in verdicts."""

    @property
    def title(self) -> str:
        """The cause in one line."""

    @property
    def severity(self) -> Severity:
        """How bad it is when it is certain; an opinion may be milder."""

    @property
    def needs(self) -> Sequence[str]:
        """Signals or facts without which the rule is silent: the registry records what was missing.

        An entry is a signal name, or several joined by ``|`` when any of them will do, or
        ``fact:<name>`` for a diary fact; ``event:<kind>`` never counts as missing.
        """

    @property
    def scope(self) -> str:
        """``episode``: asked for each fall of the hit rate; ``window``: once; ``both``."""

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge the case; None when there is nothing to say (the phenomenon is absent)."""
