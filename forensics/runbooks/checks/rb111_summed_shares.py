"""Shares added up, or averaged without their weights.

## What it checks

`sum` over a gauge that is a share (KV cache usage, a hit rate), and `sum` or `avg` over a ratio
that was formed per series.

## Why it matters

The usages of eight engines add up to as much as 8. And the mean of eight hit rates is not the hit
rate of the service: an idle engine weighs as much as a busy one.

## Wrong

```promql
avg(rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m]))
```

## Right

```promql
sum(rate(vllm:prefix_cache_hits_total[5m])) / sum(rate(vllm:prefix_cache_queries_total[5m]))
```

## When it is silent

A sum of shares divided by a `count` is a mean, and left to
[RB113](RB113-averaged-engines.md).
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Query, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import Aggregate, Binary, bare, nodes
from forensics.runbooks.query_facts import is_hit_ratio, on, scale, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each sum of shares and each mean of ratios."""
    for query, tree in trees(document):
        means = {
            bare(node.left) for node in nodes(tree) if isinstance(node, Binary) and _is_mean(node)
        }
        for node in nodes(tree):
            if isinstance(node, Aggregate) and node not in means:
                yield from _of_aggregate(query, node)


def _is_mean(node: Binary) -> bool:
    right = bare(node.right)
    return node.operator == "/" and isinstance(right, Aggregate) and right.operator == "count"


def _of_aggregate(query: Query, node: Aggregate) -> Iterator[Remark]:
    inner = bare(node.inner)
    if node.operator in ("sum", "avg") and is_hit_ratio(inner):
        yield on(
            query,
            node,
            f"{node.operator}() of hit rates formed per series gives idle engines full weight: "
            "sum hits and queries first, then divide.",
        )
    elif node.operator == "sum" and scale(inner) is not None:
        yield on(
            query,
            node,
            "These are shares of each engine, and their sum is a share of nothing: use max() "
            "or avg().",
        )


CHECK = RunbookCheck("RB111", "summed-shares", "warning", look, __doc__)
