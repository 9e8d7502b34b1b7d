"""PromQL that does not parse.

## What it checks

Every PromQL expression in the document, in code blocks, inline code, rule files and dashboards, is
parsed with the grammar and the types of Prometheus.

## Why it matters

Prometheus refuses a rule file with one bad expression as a whole, and somebody on call at night
pastes a broken query once, gets an error, and goes on without it.

## Wrong

```promql
sum(rate(vllm:prompt_tokens_total[5m]) by (model_name)
```

## Right

```promql
sum(rate(vllm:prompt_tokens_total[5m])) by (model_name)
```

## When it is silent

Variables of Grafana and Helm and placeholders such as `<window>` count as something that fits.
Expressions that name no metric of vLLM are not looked at.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import remark


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each expression that does not parse."""
    for query in document.queries:
        if query.fault is not None:
            fault = query.fault
            yield remark(query, fault.start, fault.end, f"This is no PromQL: {fault.message}.")


CHECK = RunbookCheck("RB101", "promql-syntax", "critical", look, __doc__)
