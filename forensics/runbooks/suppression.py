"""Which findings a document's own comments hold back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from forensics.runbooks.directives import Directive
from forensics.runbooks.interface import RunbookCheck

Hold = Literal["disabled", "snoozed"]


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding is held back.

    Attributes:
        until / reason: of a snooze.
    """

    hold: Hold
    until: date | None = None
    reason: str = ""


def held(
    check: RunbookCheck, line: int, directives: Sequence[Directive], today: date
) -> Suppression | None:
    """Return why a check's finding on a line is held back; None when it is not.

    Later comments win over earlier ones; a snooze counts only while nothing disables.
    """
    found: Suppression | None = None
    for directive in directives:
        if not directive.first_line <= line <= directive.last_line:
            continue
        if not names(directive, check):
            continue
        if directive.kind in ("disable", "disable-next-line"):
            found = Suppression("disabled")
        elif directive.kind == "enable":
            found = None
        elif directive.until is not None and directive.until >= today and found is None:
            found = Suppression("snoozed", directive.until, directive.reason)
    return found


def names(directive: Directive, check: RunbookCheck) -> bool:
    """Tell whether a comment speaks of a check, by id, by name or as one of all."""
    return any(
        rule.text.lower() in (check.id.lower(), check.name, "all") for rule in directive.rules
    )
