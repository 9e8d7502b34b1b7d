"""A histogram queried in a way that gives no quantile of now.

## What it checks

`histogram_quantile` over buckets that are not rated, over an aggregation that drops `le`, with a
quantile above 1; and the bare name of a histogram in an expression.

## Why it matters

Buckets count since the start of the process, so without `rate` the p99 is that of the server's
whole life. Without `le` the function has no buckets and returns nothing. A histogram exposes
`_bucket`, `_sum` and `_count`, never its bare name.

## Wrong

```promql
histogram_quantile(0.99, sum by (model_name) (rate(vllm:time_to_first_token_seconds_bucket[5m])))
```

## Right

```promql
histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))
```

## When it is silent

A name alone in running text is taken for the family.
"""

from collections.abc import Iterator

from forensics.catalog.metrics_catalog import sample
from forensics.runbooks.interface import Document, Query, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import (
    Aggregate,
    Call,
    Node,
    Number,
    Selector,
    bare,
    nodes,
    selectors,
)
from forensics.runbooks.query_facts import mentions, on, rated, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each misuse of a histogram."""
    for mention in mentions(document):
        entry = mention.family
        if (
            mention.sample is None
            and entry is not None
            and entry.type == "histogram"
            and mention.query.role != "mention"
        ):
            yield mention.remark(
                f"{mention.name} is a histogram: it is exposed as {mention.name}_bucket, _sum and "
                "_count."
            )
    for query, tree in trees(document):
        growing = rated(tree)
        for node in nodes(tree):
            if isinstance(node, Call) and node.function == "histogram_quantile":
                yield from _of_quantile(query, node, growing)


def _of_quantile(query: Query, node: Call, growing: set[Selector]) -> Iterator[Remark]:
    if len(node.arguments) != 2:
        return
    quantile, vector = bare(node.arguments[0]), node.arguments[1]
    known = [part for part in selectors(vector) if part.metric and sample(part.metric)]
    if not known:
        return
    variable = query.filled.touches(quantile.start, quantile.end)
    if isinstance(quantile, Number) and quantile.value > 1 and not variable:
        yield on(query, quantile, f"A quantile is 0 to 1: write {quantile.value / 100:g}.")
    if any(part not in growing for part in known):
        yield on(
            query,
            vector,
            "These buckets count since the server started: take their rate() before the quantile.",
        )
    dropping = _drops_le(vector)
    if dropping is not None:
        yield on(
            query, dropping, "This aggregation drops `le`, without which there are no buckets."
        )


def _drops_le(vector: Node) -> Aggregate | None:
    for node in nodes(vector):
        if isinstance(node, Aggregate):
            kept = "le" in node.by if node.by is not None else node.without is not None
            if not kept or (node.without is not None and "le" in node.without):
                return node
    return None


CHECK = RunbookCheck("RB116", "histogram-misuse", "critical", look, __doc__)
