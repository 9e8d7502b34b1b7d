"""A server flag that the targeted releases do not have yet.

## What it checks

Flags against the releases the document is for: the tag of the container image where there is one,
else the target version of the document.

## Why it matters

The server refuses to start with a flag it does not know.

## Wrong

For vLLM 0.11.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --kv-cache-metrics
```

## Right

For vLLM 0.12.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --kv-cache-metrics
```

## When it is silent

Flags whose releases the catalogue does not know.
"""

from collections.abc import Iterator

from forensics.ci_formats.interface import Severity
from forensics.runbooks.flag_facts import given
from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each flag of a later release."""
    for use in given(document):
        early = [release for release in use.target.releases if release < use.flag.span.first]
        if not early:
            continue
        whole = len(early) == len(use.target.releases)
        severity: Severity | None = None if whole and use.command.complete else "warning"
        yield use.remark(
            f"{use.flag.name} comes with {use.flag.span.first}; this is for vLLM {use.target}.",
            severity=severity,
        )


CHECK = RunbookCheck("RB203", "flag-not-yet", "critical", look, __doc__)
