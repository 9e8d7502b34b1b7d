"""What a CI format renders: a neutral finding that both `analyze` and `lint` can be turned into."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""From the mildest to the gravest."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a text file; lines and columns count from 1, columns in characters.

    Attributes:
        file: path as the operator named it, with forward slashes.
        end_line / end_column: the column is the one after the last character.
        text: what stands there, without line breaks added or taken.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What a finding is an instance of.

    Attributes:
        id / name: public and stable, e.g. ``RB103`` and ``metric-renamed``.
        summary: one sentence.
        severity: the usual one.
        page: path of its page in the documentation, relative to the repository.
    """

    id: str
    name: str
    summary: str
    severity: Severity
    page: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        rule: what it is an instance of.
        severity: of this instance.
        message: one or two sentences for people.
        place: where; None for a finding about a whole analysis.
        replacement: the text that mends it, when that is certain.
        fingerprint: stays the same while the finding stays, though lines move.
    """

    rule: RuleInfo
    severity: Severity
    message: str
    place: Place | None
    replacement: str | None
    fingerprint: str
