"""A hit rate upside down.

## What it checks

Cache queries divided by cache hits.

## Why it matters

The result is above 1 and grows when the cache gets worse, so `< 0.5` never fires and the panel
shows infinity when there are no hits.

## Wrong

```promql
sum(rate(vllm:prefix_cache_queries_total[5m])) / sum(rate(vllm:prefix_cache_hits_total[5m]))
```

## Right

```promql
sum(rate(vllm:prefix_cache_hits_total[5m])) / sum(rate(vllm:prefix_cache_queries_total[5m]))
```

## When it is silent

Divisions of anything else.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import Binary, nodes
from forensics.runbooks.query_facts import hits_or_queries, on, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each hit rate upside down."""
    for query, tree in trees(document):
        for node in nodes(tree):
            if (
                isinstance(node, Binary)
                and node.operator == "/"
                and hits_or_queries(node.left) == "queries"
                and hits_or_queries(node.right) == "hits"
            ):
                yield on(query, node, "A hit rate is hits over queries; this is the other way up.")


CHECK = RunbookCheck("RB110", "inverted-hit-rate", "critical", look, __doc__)
