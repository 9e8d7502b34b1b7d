"""A metric that no release of vLLM exposes.

## What it checks

Names that begin with `vllm:` against the catalogue of all metric families of all releases.

## Why it matters

A query for a metric that does not exist is no error in Prometheus: it returns nothing, the panel
stays empty and the alert never fires.

## Wrong

```promql
rate(vllm:prefix_cache_hit_total[5m])
```

## Right

```promql
rate(vllm:prefix_cache_hits_total[5m])
```

## When it is silent

Metrics that a recording rule in the same run makes, names with a second colon (the form of
recording rules), and names allowed by `known-metrics` in the settings. So are the metrics of the
request router of vLLM's production stack, which share the prefix.
"""

import difflib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from forensics.catalog.metrics_catalog import families, sample
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.query_facts import mentions

# https://github.com/vllm-project/production-stack, src/vllm_router/services/metrics_service
_ROUTER = frozenset(
    {
        "vllm:current_qps",
        "vllm:avg_decoding_length",
        "vllm:num_prefill_requests",
        "vllm:num_decoding_requests",
        "vllm:num_incoming_requests_total",
        "vllm:avg_latency",
        "vllm:avg_itl",
        "vllm:avg_ttft",
        "vllm:router_queueing_delay_seconds",
        "vllm:healthy_pods_total",
    }
)


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each name that stands for nothing."""
    for mention in mentions(document):
        name = mention.name
        if mention.family is not None or not name.startswith("vllm:") or name.count(":") > 1:
            continue
        if name in _ROUTER or any(fnmatchcase(name, known) for known in document.recorded):
            continue
        if mention.query.role == "mention" and (
            "_" not in name or _begins_names(name) or _STAND_INS.fullmatch(name)
        ):
            continue  # an image tag such as vllm:latest, or the beginning of several names
        near = _nearest(name)
        hint = f" Did you mean {near}?" if near else ""
        yield mention.remark(f"No vLLM release exposes a metric {name}.{hint}")


_STAND_INS = re.compile(
    r"vllm:(?:x+|foo|bar|metric|name|metric_name|some_metric)(?:_total|_bucket)?"
)


@cache
def _begins_names(name: str) -> bool:
    return any(known.startswith(name) for known in families())


@cache
def _nearest(name: str) -> str | None:
    names = [known for entry in families().values() for known in (entry.name, *entry.samples)]
    near = difflib.get_close_matches(name, names, 1, cutoff=0.75)
    if not near:
        return None
    found = sample(near[0])
    return near[0] if found is not None else families()[near[0]].exposed_name()


CHECK = RunbookCheck("RB102", "metric-unknown", "critical", look, __doc__)
