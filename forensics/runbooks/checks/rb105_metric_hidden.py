"""A metric that the targeted releases hide.

## What it checks

Deprecated metrics without a successor, in the releases that expose them only when
`--show-hidden-metrics-for-version` equals the previous minor release.

## Why it matters

On a server started the usual way the query returns nothing, and the next minor release deletes the
metric for good.

## Wrong

For vLLM 0.9.0 with the V0 engine:

```promql
vllm:gpu_prefix_cache_hit_rate < 0.3
```

## Right

Start the server with `VLLM_USE_V1=1`, whose counters give the rate of any window:

```promql
sum(increase(vllm:gpu_prefix_cache_hits_total[5m]))
  / sum(increase(vllm:gpu_prefix_cache_queries_total[5m]))
```

## When it is silent

Where the metric has a successor: that is [RB103](RB103-metric-renamed.md).
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import current_mentions, gaps, instead


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each hidden metric."""
    for mention in current_mentions(document):
        entry = mention.family
        if entry is None or entry.renamed_to is not None:
            continue
        absent, hidden = gaps(entry, document.target)
        if hidden and not absent:
            yield mention.remark(
                f"{mention.name} is hidden in vLLM {document.target} unless "
                f"--show-hidden-metrics-for-version asks for it.{instead(entry)}"
            )


CHECK = RunbookCheck("RB105", "metric-hidden", "warning", look, __doc__)
