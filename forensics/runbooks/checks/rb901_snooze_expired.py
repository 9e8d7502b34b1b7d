"""A snooze whose day has passed.

## What it checks

`forensics: snooze=DATE …` comments against the day of the run.

## Why it matters

A snooze is a promise to look again. When its day has passed the findings it held back come back,
and the comment itself is one more thing that rots.

## Wrong

```markdown
<!-- forensics: snooze=2024-01-31 RB103 until the upgrade -->
```

## Right

```markdown
<!-- forensics: snooze=2099-01-31 RB103 until the upgrade -->
```

## When it is silent

Up to and with the day named.
"""

from collections.abc import Iterator
from datetime import date

from forensics.runbooks.directives import Directive
from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield nothing: the runner asks `expired`, since the day is not in the document."""
    del document
    return iter(())


def expired(directive: Directive, today: date) -> Remark | None:
    """Return a remark when a snooze is over."""
    if directive.until is None or directive.until >= today:
        return None
    start, end = directive.place.span
    return Remark(start, end, f"This snooze ended on {directive.until}: mend it or set a new day.")


CHECK = RunbookCheck("RB901", "snooze-expired", "warning", look, __doc__)
