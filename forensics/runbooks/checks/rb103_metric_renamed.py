"""A metric that the targeted releases expose under another name.

## What it checks

Metrics that were renamed, against the releases the document is for. In the release that renames a
metric both names usually exist; one or more minor releases later the old one is hidden, then gone.

## Why it matters

After an upgrade the old name returns nothing: panels go empty, alerts go silent.

## Wrong

```promql
max by (engine) (vllm:gpu_cache_usage_perc) > 0.95
```

## Right

```promql
max by (engine) (vllm:kv_cache_usage_perc) > 0.95
```

## When it is silent

Where the old name stands on one side of an `or` and the new one on the other, which is how a query
serves releases before and after.

## Fix

`--fix` writes the new name when all targeted releases expose it.
"""

from collections.abc import Iterator

from forensics.catalog.metrics_catalog import Exposure, family
from forensics.ci_formats.interface import Severity
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import Mention, alternatives, current_mentions, gaps


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each old name."""
    for mention in current_mentions(document):
        if mention.family is not None and mention.family.renamed_to is not None:
            found = _remark(mention, document)
            if found is not None:
                yield found


def _remark(mention: Mention, document: Document) -> Remark | None:
    old = mention.family
    new = family(old.renamed_to) if old is not None and old.renamed_to else None
    if old is None or new is None:
        return None
    target = document.target
    absent, hidden = gaps(old, target)
    missing = sorted((*absent, *hidden))
    if not missing:
        return None
    if mention.query.tree is not None:
        others = alternatives(mention.query.tree, mention.selector)
        if others & {new.name, *new.samples, *(n.replace(":", "_", 1) for n in new.samples)}:
            return None
    shown = [
        release
        for release in missing
        if new.exposure(release, target.generation(release)) is Exposure.VISIBLE
    ]
    if not shown:
        return None
    suffix = mention.name[len(old.name) :]
    if not suffix and new.type == "counter" and mention.query.role != "mention":
        suffix = "_total"
    name = new.name + suffix
    if mention.name.startswith("vllm_"):
        name = name.replace(":", "_", 1)
    everywhere = all(
        new.exposure(release, target.generation(release)) is Exposure.VISIBLE
        for release in target.releases
    )
    state = "is hidden" if not absent else "is gone"
    message = f"{mention.name} {state} in vLLM {target}; its name is {name} since {new.first}."
    if not everywhere:
        message += f" For all of the range write: {name} or {mention.name}."
    severity: Severity | None = None if len(missing) == len(target.releases) else "warning"
    if mention.query.role == "mention":
        severity = "warning"
    return mention.remark(message, name if everywhere else None, severity)


CHECK = RunbookCheck("RB103", "metric-renamed", "critical", look, __doc__)
