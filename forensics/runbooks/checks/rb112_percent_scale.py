"""A share from 0 to 1 compared as if it were percent, or the reverse.

## What it checks

Thresholds above 1 on usages and hit rates, thresholds up to 1 on shares that were multiplied by
100, and panels whose unit is the other one (`percent` is 0 to 100, `percentunit` 0 to 1).

## Why it matters

`perc` in a name of vLLM never means percent: `vllm:kv_cache_usage_perc` is 0.93 when the log line
says 93.0 %. An alert on `> 90` never fires.

## Wrong

```promql
vllm:kv_cache_usage_perc > 90
```

## Right

```promql
vllm:kv_cache_usage_perc > 0.9
```

## When it is silent

Where the threshold is a variable.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Query, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import COMPARISONS, Binary, Number, bare, nodes
from forensics.runbooks.query_facts import on, scale, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each threshold and each panel on the wrong scale."""
    for query, tree in trees(document):
        shown = scale(tree)
        if query.unit == "percent" and shown == "fraction":
            yield on(
                query,
                tree,
                "The panel's unit is percent (0 to 100) and this runs from 0 to 1: set the unit to "
                "percentunit.",
            )
        elif query.unit == "percentunit" and shown == "percent":
            yield on(
                query,
                tree,
                "The panel's unit is percentunit (0 to 1) and this was multiplied by 100: set the "
                "unit to percent.",
            )
        for node in nodes(tree):
            if isinstance(node, Binary) and node.operator in COMPARISONS:
                yield from _of_comparison(query, node)


def _of_comparison(query: Query, node: Binary) -> Iterator[Remark]:
    for side, other in ((node.left, node.right), (node.right, node.left)):
        number = bare(other)
        if not isinstance(number, Number) or query.filled.touches(number.start, number.end):
            continue
        found, value = scale(side), number.value
        if found == "fraction" and 1 < value <= 100:
            yield on(
                query,
                number,
                "The other side runs from 0 to 1 ('perc' in a name does not mean percent): "
                f"{value:g} % is {value / 100:g}.",
            )
        elif found == "percent" and 0 < value < 1:
            yield on(
                query,
                number,
                f"The other side was multiplied by 100: {value:g} of it is {value:g} %.",
            )


CHECK = RunbookCheck("RB112", "percent-scale", "critical", look, __doc__)
