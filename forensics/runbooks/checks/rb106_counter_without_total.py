"""A counter queried without its `_total`.

## What it checks

Names of counters as vLLM's code and documentation write them, used in an expression.

## Why it matters

A counter defined as `vllm:prompt_tokens` is exposed as `vllm:prompt_tokens_total`. The bare name
returns nothing.

## Wrong

```promql
sum(rate(vllm:prompt_tokens[5m]))
```

## Right

```promql
sum(rate(vllm:prompt_tokens_total[5m]))
```

## When it is silent

A name alone in running text is taken for the family. `vllm:iteration_tokens_total` is a histogram
in spite of its name.

## Fix

`--fix` appends `_total`.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import mentions


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each bare counter in an expression."""
    for mention in mentions(document):
        if (
            mention.sample is None
            and mention.family is not None
            and mention.family.type == "counter"
            and mention.query.role != "mention"
        ):
            yield mention.remark(
                f"{mention.name} is a counter: it is exposed as {mention.name}_total.",
                f"{mention.name}_total",
            )


CHECK = RunbookCheck("RB106", "counter-without-total", "critical", look, __doc__)
