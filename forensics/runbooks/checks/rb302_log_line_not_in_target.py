"""A search for a line that the targeted releases do not print.

## What it checks

The same patterns as [RB301](RB301-log-line-unknown.md), against the releases and the engine
generation the document is for.

## Why it matters

V0 warned of preempted sequence groups; V1 prints no such line at all. A runbook that greps for it
concludes from silence that there is no preemption, which is when it is needed most.

## Wrong

For vLLM 0.11.2:

```bash
kubectl logs deploy/vllm | grep "is preempted by"
```

## Right

For vLLM 0.11.2:

```bash
kubectl logs deploy/vllm | grep "Preemptions: "
```

## When it is silent

Where at least one line that the pattern finds is printed in each targeted release.
"""

from collections.abc import Iterator, Sequence

from forensics.catalog.log_lines import LogLine
from forensics.catalog.versions import Version
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.log_facts import branches
from forensics.runbooks.target import Target


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each alternative that finds nothing in the targeted releases."""
    for pattern in document.patterns:
        for branch in branches(pattern):
            missing = _missing(branch.found, document.target)
            if branch.found and missing:
                yield Remark(
                    *pattern.pattern.place(branch.start, branch.end),
                    _message(branch.found, missing, document.target),
                    severity=None if len(missing) == len(document.target.releases) else "info",
                )


def _missing(found: Sequence[LogLine], target: Target) -> list[Version]:
    return [
        release
        for release in target.releases
        if not any(line.printed_by(release, target.generation(release)) for line in found)
    ]


def _message(found: Sequence[LogLine], missing: Sequence[Version], target: Target) -> str:
    first = min(line.span.first for line in found)
    last = max(line.span.last for line in found)
    engines = sorted({engine for line in found for engine in line.engines})
    printed = f"{'/'.join(engines)} prints it in {first} to {last}"
    message = f"vLLM {target} does not print this line: {printed}."
    if any(line.kind.startswith("preemption") for line in found):
        message += (
            " V1 reports preemptions in the stats line (Preemptions: N, 0.11.1 and later) and in "
            "vllm:num_preemptions_total (0.8.0 and later)."
        )
    if len(missing) < len(target.releases):
        message += f" It is missing in {missing[0]} to {missing[-1]}."
    return message


CHECK = RunbookCheck("RB302", "log-line-not-in-target", "warning", look, __doc__)
