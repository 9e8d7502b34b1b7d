"""An alert on a ratio that has nothing to divide by when there is no traffic.

## What it checks

Alerts that compare a ratio of rates (a hit rate, a mean latency) and neither ask for traffic nor
keep the denominator from being zero.

## Why it matters

Without traffic the ratio is 0/0, which compares as false: the alert resolves itself in the middle
of an outage. With three requests an hour it is noise, and fires at night.

## Wrong

```yaml
- alert: PrefixCacheHitRateLow
  expr: rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m]) < 0.3
```

## Right

```yaml
- alert: PrefixCacheHitRateLow
  expr: |
    rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m]) < 0.3
      and rate(vllm:prefix_cache_queries_total[5m]) > 100
```

## When it is silent

Outside alerts; where the expression holds an `and`, an `unless` or an `or`; where the denominator
is compared or clamped.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import COMPARISONS, Binary, Call, Node, nodes, selectors
from forensics.runbooks.query_facts import is_counter, on, rated, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each alert on an unguarded ratio."""
    for query, tree in trees(document):
        if query.role != "alert" or _asks_for_traffic(tree):
            continue
        growing = rated(tree)
        for node in nodes(tree):
            if not isinstance(node, Binary) or node.operator not in COMPARISONS:
                continue
            for part in nodes(node):
                if isinstance(part, Binary) and part.operator == "/":
                    below = list(selectors(part.right))
                    if below and all(is_counter(one) and one in growing for one in below):
                        yield on(
                            query,
                            part,
                            "Without traffic this is 0/0 and the alert falls silent, with little "
                            "it is noise: add `and <rate of the denominator> > …`.",
                        )
            break


def _asks_for_traffic(tree: Node) -> bool:
    for node in nodes(tree):
        if isinstance(node, Binary):
            if node.operator in ("and", "or", "unless"):
                return True
            if node.operator == "/" and any(
                (isinstance(part, Binary) and part.operator in COMPARISONS)
                or (isinstance(part, Call) and part.function == "clamp_min")
                for part in nodes(node.right)
            ):
                return True
    return False


CHECK = RunbookCheck("RB114", "no-traffic-guard", "warning", look, __doc__)
