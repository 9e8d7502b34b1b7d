"""A range that holds fewer than two scrapes.

## What it checks

Ranges of `rate`, `irate`, `increase`, `delta`, `idelta` and `deriv` against twice the scrape
interval: that of the document (`scrape_interval`, or `interval` of a ServiceMonitor endpoint), else
`scrape-interval` of the settings, else 15 seconds.

## Why it matters

These functions need two samples. With a range of one scrape interval they return nothing most of
the time; with less than two, one lost scrape leaves a hole.

## Wrong

```promql
rate(vllm:generation_tokens_total[15s])
```

## Right

```promql
rate(vllm:generation_tokens_total[1m])
```

## When it is silent

Ranges that are variables, such as `$__rate_interval`.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import RANGE_RATES, Call, Selector, bare, nodes
from forensics.runbooks.query_facts import family_of, remark, trees

_FUNCTIONS = RANGE_RATES | {"delta", "idelta", "deriv"}


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each range below two scrapes."""
    least = 2 * document.scrape_interval_s
    for query, tree in trees(document):
        for node in nodes(tree):
            if not isinstance(node, Call) or node.function not in _FUNCTIONS:
                continue
            inner = bare(node.arguments[0]) if node.arguments else None
            if not isinstance(inner, Selector) or inner.range_s is None:
                continue
            if family_of(inner) is None or query.filled.touches(inner.range_start, inner.range_end):
                continue
            if inner.range_s < least:
                yield remark(
                    query,
                    inner.range_start,
                    inner.range_end,
                    f"{node.function}() needs two samples, and {inner.range_s:g} s is less than "
                    f"two scrapes of {document.scrape_interval_s:g} s.",
                )


CHECK = RunbookCheck("RB115", "range-too-short", "warning", look, __doc__)
