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

_LOOK_ALIKES = str.maketrans("oil", "011")


def look(document: Document) -> Iterator[Remark]:
    """Yield nothing: the runner asks `faults`, since it knows the names of all checks."""
    del document
    return iter(())


def faults(directive: Directive, names: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark for each unknown name, or for the whole comment."""
    if directive.kind == "fault":
        start, end = directive.place.span
        yield Remark(start, end, f"This comment to forensics is not obeyed: {directive.reason}.")
    known = {name.lower(): name for name in names}
    for rule in directive.rules:
        written = rule.text.lower()
        if written in known:
            continue
        digits = written.translate(_LOOK_ALIKES)
        near = [digits] if digits in known else difflib.get_close_matches(written, known, 1)
        hint = f" Did you mean {known[near[0]]}?" if near else ""
        yield Remark(*rule.span, f"There is no check {rule.text}.{hint}")


CHECK = RunbookCheck("RB902", "directive-unknown", "warning", look, __doc__)
