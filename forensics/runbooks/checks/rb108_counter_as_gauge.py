"""A counter read as if it were a gauge.

## What it checks

Counters compared with a threshold, or given to `avg_over_time`, `max_over_time`, `min_over_time`,
`deriv`, `delta` or `predict_linear`, without `rate` or `increase`.

## Why it matters

A counter counts since the start of the process: a threshold on it is passed once, stays passed
until the next restart, and then says nothing about now.

## Wrong

```promql
vllm:num_preemptions_total > 100
```

## Right

```promql
increase(vllm:num_preemptions_total[10m]) > 100
```

## When it is silent

Comparisons with 0, which ask whether anything ever happened.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Query, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import (
    COMPARISONS,
    GAUGE_FUNCTIONS,
    Aggregate,
    Binary,
    Call,
    Node,
    Number,
    Selector,
    bare,
    nodes,
)
from forensics.runbooks.query_facts import is_counter, on, trees

_OVER_TIME = frozenset({"avg_over_time", "max_over_time", "min_over_time", "quantile_over_time"})


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each counter that is not rated."""
    for query, tree in trees(document):
        for node in nodes(tree):
            if isinstance(node, Call) and node.function in (GAUGE_FUNCTIONS | _OVER_TIME):
                yield from _of_function(query, node)
            elif isinstance(node, Binary) and node.operator in COMPARISONS:
                for side, other in ((node.left, node.right), (node.right, node.left)):
                    counter = _counter(side)
                    number = bare(other)
                    if counter is None or (isinstance(number, Number) and number.value == 0):
                        continue
                    yield on(
                        query,
                        side,
                        f"{counter.metric} counts since the server's start: compare its "
                        "increase() or rate() instead.",
                    )


def _of_function(query: Query, node: Call) -> Iterator[Remark]:
    for argument in node.arguments:
        inner = bare(argument)
        if isinstance(inner, Selector) and is_counter(inner):
            yield on(
                query,
                node,
                f"{inner.metric} is a counter, and {node.function}() is for gauges: "
                "use rate() or increase().",
            )


def _counter(node: Node) -> Selector | None:
    """The counter whose plain value a part is, also summed up."""
    node = bare(node)
    if isinstance(node, Aggregate) and node.operator in ("sum", "avg", "max", "min"):
        node = bare(node.inner)
    return node if isinstance(node, Selector) and is_counter(node) else None


CHECK = RunbookCheck("RB108", "counter-as-gauge", "warning", look, __doc__)
