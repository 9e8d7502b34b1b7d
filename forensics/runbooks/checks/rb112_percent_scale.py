"""A share from 0 to 1 compared as if it were percent, or the reverse.

## What it checks

Thresholds above 1 on usages and hit rates, and thresholds up to 1 on shares that were multiplied
by 100.

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

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.tree import COMPARISONS, Binary, Number, bare, nodes
from forensics.runbooks.query_facts import on, scale, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each threshold on the wrong scale."""
    for query, tree in trees(document):
        for node in nodes(tree):
            if not isinstance(node, Binary) or node.operator not in COMPARISONS:
                continue
            for side, other in ((node.left, node.right), (node.right, node.left)):
                number = bare(other)
                if not isinstance(number, Number):
                    continue
                if query.filled.touches(number.start, number.end):
                    continue
                found = scale(side)
                if found == "fraction" and 1 < number.value <= 100:
                    yield on(
                        query,
                        number,
                        "The left side runs from 0 to 1 ('perc' in a name does not mean percent): "
                        f"{number.value:g} % is {number.value / 100:g}."
                        if side is node.left
                        else "The right side runs from 0 to 1 ('perc' in a name does not mean "
                        f"percent): {number.value:g} % is {number.value / 100:g}.",
                    )
                elif found == "percent" and 0 < number.value < 1:
                    yield on(
                        query,
                        number,
                        f"The other side was multiplied by 100: {number.value:g} of it is "
                        f"{number.value:g} %.",
                    )


CHECK = RunbookCheck("RB112", "percent-scale", "critical", look, __doc__)
