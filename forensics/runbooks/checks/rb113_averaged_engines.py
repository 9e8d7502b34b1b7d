"""An average over engines where the fullest one is meant.

## What it checks

`avg` over the KV cache usage of engines, and over their queues, without keeping the engines apart.

## Why it matters

Each data-parallel rank and each replica has its own pool, scheduler and prefix cache. One engine at
100 % that preempts and seven at 40 % average to 47 %: the alert stays silent while an eighth of
the users waits.

## Wrong

```promql
avg(vllm:kv_cache_usage_perc) > 0.95
```

## Right

```promql
max(vllm:kv_cache_usage_perc) > 0.95
```

## When it is silent

Averages `by` engine, instance, pod or the like, and averages over time.
"""

from collections.abc import Iterator

from forensics.ci_formats.interface import Severity
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.promql.nodes import COMPARISONS, Aggregate, Binary, nodes, selectors
from forensics.runbooks.query_facts import family_of, is_fraction, on, trees

_APART = frozenset(
    {"engine", "instance", "pod", "replica", "rank", "hostname", "node", "container"}
)
_QUEUES = frozenset({"vllm:num_requests_waiting", "vllm:num_requests_running"})


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each average that hides the fullest engine."""
    for query, tree in trees(document):
        compared = query.role == "alert" or any(
            isinstance(node, Binary) and node.operator in COMPARISONS for node in nodes(tree)
        )
        severity: Severity = "warning" if compared else "info"
        for node in nodes(tree):
            if not isinstance(node, Aggregate) or node.operator != "avg" or _keeps_apart(node):
                continue
            found = list(selectors(node.inner))
            names = [entry.name for part in found if (entry := family_of(part)) is not None]
            queue = compared and bool(names) and set(names) <= _QUEUES
            if found and (all(map(is_fraction, found)) or queue):
                yield on(
                    query,
                    node,
                    "Each engine has its own pool and queue, and the average hides the one that "
                    "is full: use max(), or keep them apart with by (engine, instance).",
                    severity,
                )


def _keeps_apart(node: Aggregate) -> bool:
    if node.without is not None:
        return not _APART & set(node.without)
    return bool(node.by is not None and _APART & set(node.by))


CHECK = RunbookCheck("RB113", "averaged-engines", "warning", look, __doc__)
