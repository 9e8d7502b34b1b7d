"""A metric that the targeted releases do not expose, and that has no other name there.

## What it checks

Metrics that were removed, that a later release introduced, or that only the other engine
generation (V0 or V1) has, against the releases the document is for.

## Why it matters

The query returns nothing, and nothing says so. A runbook that reads a V0 gauge on a V1 server
sends the reader after a number that is not there.

## Wrong

For vLLM 0.11:

```promql
vllm:num_requests_swapped > 0
```

## Right

V1 does not swap; it preempts and recomputes:

```promql
rate(vllm:num_preemptions_total[5m]) > 0
```

## When it is silent

Where the metric stands on one side of an `or` whose other side the targeted releases have.
"""

from collections.abc import Iterator

from forensics.catalog.metrics_catalog import Exposure, family, sample
from forensics.ci_formats.interface import Severity
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import (
    Mention,
    alternatives,
    current_mentions,
    gaps,
    instead,
    other_engine_has,
)


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each metric the target has not."""
    for mention in current_mentions(document):
        found = _remark(mention, document)
        if found is not None:
            yield found


def _remark(mention: Mention, document: Document) -> Remark | None:
    entry, target = mention.family, document.target
    if entry is None:
        return None
    absent, _ = gaps(entry, target)
    if not absent or _renamed(mention, document) or _has_fallback(mention, document):
        return None
    if other_engine_has(entry, absent, target):
        other = "V0" if target.generation(absent[0]) == "V1" else "V1"
        why = f"only the {other} engine exposes it, and {target} runs {_generation(document)}"
    elif absent[0] < entry.first:
        why = f"it comes with {entry.first}"
    elif absent[-1] > entry.last:
        why = f"{entry.last} was the last release to have it"
    else:
        engine = target.generation(absent[0])
        why = f"its {engine} engine does not have it"
    message = f"{mention.name} is not exposed by vLLM {target}: {why}.{instead(entry)}"
    severity: Severity | None = None if len(absent) == len(target.releases) else "warning"
    if mention.query.role == "mention":
        severity = "warning"
    return mention.remark(message, severity=severity)


def _generation(document: Document) -> str:
    target = document.target
    return "/".join(dict.fromkeys(target.generation(release) for release in target.releases))


def _renamed(mention: Mention, document: Document) -> bool:
    """A successor that is there makes it a matter of names, which is RB103."""
    entry, target = mention.family, document.target
    new = family(entry.renamed_to) if entry is not None and entry.renamed_to else None
    return new is not None and any(
        new.exposure(release, target.generation(release)) is Exposure.VISIBLE
        for release in gaps(entry, target)[0]  # type: ignore[arg-type]
    )


def _has_fallback(mention: Mention, document: Document) -> bool:
    if mention.query.tree is None:
        return False
    for name in alternatives(mention.query.tree, mention.selector):
        other = sample(name)
        if other is not None and not set(gaps(other.family, document.target)[0]) & set(
            gaps(mention.family, document.target)[0]  # type: ignore[arg-type]
        ):
            return True
    return False


CHECK = RunbookCheck("RB104", "metric-not-in-target", "critical", look, __doc__)
