"""A server flag that the targeted releases no longer have.

## What it checks

Flags against the releases the document is for: the tag of the container image where there is one,
else the target version of the document.

## Why it matters

A removed flag stops the server from starting.

## Wrong

For vLLM 0.18.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --swap-space 16
```

## Right

For vLLM 0.18.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --kv-offloading-size 16
```

## When it is silent

Flags whose releases the catalogue does not know.

## Fix

`--fix` writes the flag that took its place where that takes the same values.
"""

from collections.abc import Iterator

from forensics.ci_formats.interface import Severity
from forensics.runbooks.flag_facts import given, instead
from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each flag that is gone."""
    for use in given(document):
        gone = [release for release in use.target.releases if release > use.flag.span.last]
        if not gone:
            continue
        whole = len(gone) == len(use.target.releases)
        severity: Severity | None = None if whole and use.command.complete else "warning"
        replacement = use.flag.renamed_to if whole else None
        yield use.remark(
            f"vLLM {gone[0]} has no {use.flag.name}: {use.flag.span.last} was the last release to "
            f"have it.{instead(use.flag)}",
            replacement,
            severity,
        )


CHECK = RunbookCheck("RB202", "flag-removed", "critical", look, __doc__)
