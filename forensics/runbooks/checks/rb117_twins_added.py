"""An old and a new name of one metric added together.

## What it checks

Sums of a metric and its successor, by `+` or by a name pattern that takes both.

## Why it matters

For some releases vLLM exposes both names with the same value (`gpu_prefix_cache_queries` and
`prefix_cache_queries` from 0.9.2 to 0.10.2): the sum counts everything twice.

## Wrong

For vLLM 0.9.2..0.11.2:

```promql
rate(vllm:gpu_prefix_cache_hits_total[5m]) + rate(vllm:prefix_cache_hits_total[5m])
```

## Right

For vLLM 0.9.2..0.11.2:

```promql
rate(vllm:prefix_cache_hits_total[5m]) or rate(vllm:gpu_prefix_cache_hits_total[5m])
```

## When it is silent

`or` takes the second only where the first is missing, which is right.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import Binary, nodes, selectors
from forensics.runbooks.query_facts import family_of, on, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each sum of twins."""
    for query, tree in trees(document):
        for node in nodes(tree):
            if not isinstance(node, Binary) or node.operator != "+":
                continue
            left = {entry.name for one in selectors(node.left) if (entry := family_of(one))}
            for selector in selectors(node.right):
                entry = family_of(selector)
                if entry is not None and left & {entry.renamed_to, *entry.renamed_from}:
                    yield on(
                        query,
                        node,
                        "These are two names of one metric, and some releases expose both: join "
                        "them with `or`, not with `+`.",
                    )
                    break


CHECK = RunbookCheck("RB117", "twins-added", "warning", look, __doc__)
