"""A ratio of counters since the start of the server.

## What it checks

Divisions of one plain counter by another: cache hits by cache queries, or the `_sum` of a
histogram by its `_count`.

## Why it matters

Both sides count since the process started, so the ratio is a lifetime average. After a day of 80 %
hits, an hour of none moves it by a few points: the alert fires much too late or not at all.

## Wrong

```promql
vllm:prefix_cache_hits_total / vllm:prefix_cache_queries_total < 0.4
```

## Right

```promql
rate(vllm:prefix_cache_hits_total[5m]) / (rate(vllm:prefix_cache_queries_total[5m]) > 0) < 0.4
```

## When it is silent

Where either side is rated. Recording rules are looked at like anything else.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import Binary, Node, Selector, nodes, selectors
from forensics.runbooks.query_facts import is_counter, is_hit_ratio, on, rated, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each ratio of plain counters."""
    for query, tree in trees(document):
        growing = rated(tree)
        for node in nodes(tree):
            if (
                isinstance(node, Binary)
                and node.operator == "/"
                and _plain(node.left, growing)
                and _plain(node.right, growing)
            ):
                what = "hit rate" if is_hit_ratio(node) else "ratio"
                yield on(
                    query,
                    node,
                    f"This is the {what} since the server started, not of any window: take rate() "
                    "or increase() of both sides.",
                )


def _plain(node: Node, growing: set[Selector]) -> bool:
    found = list(selectors(node))
    return bool(found) and all(is_counter(part) and part not in growing for part in found)


CHECK = RunbookCheck("RB109", "lifetime-ratio", "warning", look, __doc__)
