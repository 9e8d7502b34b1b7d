"""A comment to this tool that names an unknown check, or is not understood.

## What it checks

The ids and names in `disable`, `enable`, `disable-next-line` and `snooze` comments and in `disable`
of the settings, and the form of each comment that begins with `forensics:`.

## Why it matters

A comment with a slip of the pen holds nothing back, or holds back something else than was meant,
and nobody notices.

## Wrong

```markdown
<!-- forensics: disable=RB1O1 -->
```

## Right

```markdown
<!-- forensics: disable=RB101 -->
```

## When it is silent

`disable=all` names all checks.
"""

import difflib
from collections.abc import Iterator, Sequence

from forensics.runbooks.directives import Directive
from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield nothing: the runner asks `faults`, since it knows the names of all checks."""
    del document
    return iter(())


def faults(directive: Directive, names: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark for each unknown name, or for the whole comment."""
    if directive.kind == "fault":
        start, end = directive.place.span
        yield Remark(start, end, f"This comment to forensics is not obeyed: {directive.reason}.")
    for rule in directive.rules:
        if rule.text.lower() not in {name.lower() for name in names}:
            near = difflib.get_close_matches(rule.text.lower(), [n.lower() for n in names], 1)
            original = next((name for name in names if near and name.lower() == near[0]), None)
            hint = f" Did you mean {original}?" if original else ""
            yield Remark(*rule.span, f"There is no check {rule.text}.{hint}")


CHECK = RunbookCheck("RB902", "directive-unknown", "warning", look, __doc__)
