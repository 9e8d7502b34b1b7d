"""A search for a line that no release of vLLM prints.

## What it checks

Patterns of `grep` and its kin over logs (`kubectl logs … | grep`, files), and line filters of
LogQL, as far as they speak of preemption, swapping, caches, queues or throughput, against the
templates of all lines of all releases.

## Why it matters

A search that finds nothing looks like good news. Two lines in particular circulate in articles
and scripts although no release ever printed them: `Running … requests, … sequences in the swap out
queue` and `Sequence … is preempted from … to …`.

## Wrong

```bash
kubectl logs deploy/vllm | grep "sequences in the swap out queue"
```

## Right

```bash
kubectl logs deploy/vllm | grep -E "Preemptions: [0-9]+"
```

## When it is silent

Patterns of other topics, patterns with variables, and logs that are plainly not the server's.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.log_facts import branches


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each alternative that finds nothing in any release."""
    for pattern in document.patterns:
        for branch in branches(pattern):
            if branch.found:
                continue
            if branch.circulates:
                why = (
                    "No vLLM release prints this line, though articles show it: V1 reports "
                    "preemptions in the stats line (Preemptions: N, 0.11.1 and later) and in "
                    "vllm:num_preemptions_total."
                )
            elif branch.other_case:
                why = f"vLLM writes {branch.text!r} in other letter case: search with -i."
            else:
                why = "No vLLM release prints such a line."
            yield Remark(*pattern.pattern.place(branch.start, branch.end), why)


CHECK = RunbookCheck("RB301", "log-line-unknown", "warning", look, __doc__)
