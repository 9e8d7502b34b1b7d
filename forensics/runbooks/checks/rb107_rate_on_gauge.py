"""`rate` or `increase` of a gauge.

## What it checks

`rate`, `irate` and `increase` over metrics that go up and down.

## Why it matters

These functions take each fall for a restart of the process and add the new value on top. Over a
gauge they return a large number that means nothing.

## Wrong

```promql
rate(vllm:num_requests_waiting[5m]) > 0
```

## Right

```promql
deriv(vllm:num_requests_waiting[5m]) > 0
```

## When it is silent

Counters, and the `_sum`, `_count` and `_bucket` of histograms, are what these functions are for.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import RANGE_RATES, Call, Selector, bare, nodes
from forensics.runbooks.query_facts import family_of, on, trees


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each gauge whose rate is taken."""
    for query, tree in trees(document):
        for node in nodes(tree):
            if not isinstance(node, Call) or node.function not in RANGE_RATES:
                continue
            inner = bare(node.arguments[0]) if node.arguments else None
            if not isinstance(inner, Selector):
                continue
            entry = family_of(inner)
            if entry is not None and entry.type == "gauge":
                yield on(
                    query,
                    node,
                    f"{inner.metric} is a gauge: {node.function}() takes each fall for a restart. "
                    "Use deriv(), delta() or an _over_time() function.",
                )


CHECK = RunbookCheck("RB107", "rate-on-gauge", "warning", look, __doc__)
