"""`--max-num-seqs` above what the GPU holds for the model and context stated.

## What it checks

The limit of each server start against the ceiling that `forensics ceiling` computes, where GPU,
model and context are stated: by the command's flags, the front matter or a comment
(`gpu`, `model`, `context`), the node selector of a manifest, or the text around the command.

## Why it matters

A limit is copied from a runbook for another GPU. Above the ceiling the pool runs out under load,
running requests are preempted and computed again, and the latency of all of them goes with it.

## Wrong

```markdown
<!-- forensics: gpu=L4 context=2048 -->

    vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 256
```

## Right

```markdown
<!-- forensics: gpu=L4 context=2048 -->

    vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 8
```

## When it is silent

Where one of GPU, model and context is not stated, or not in the tables; up to the upper end of the
ceiling's interval; where a GPU name fits several cards, up to the ceiling of the largest.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.serve import ServeCommand


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each limit above the ceiling."""
    for command in document.commands:
        found = _remark(document, command)
        if found is not None:
            yield found


def _remark(document: Document, command: ServeCommand) -> Remark | None:
    argument = command.given("--max-num-seqs")
    value = command.value("--max-num-seqs")
    if argument is None or argument.value is None or value is None or not value.isdecimal():
        return None
    # Few runs get here; the tables and bounds behind it cost as much as all other checks.
    from forensics.runbooks.ceilings import plans, stated_for, wanted_by

    deployment = stated_for(document, command)
    if deployment is None:
        return None
    release = document.target_of(command).releases[-1]
    wanted = wanted_by(deployment, command, release, document.stated)
    limits = [(plan.limit, plan) for plan in plans(wanted) if plan.limit is not None]
    if not limits:
        return None
    limit, plan = max(limits, key=lambda pair: pair[0].value)
    if int(value) <= limit.high:
        return None
    gpu = deployment.gpu if plan.gpu is None else plan.gpu.name
    return Remark(
        *argument.value.span,
        f"Above the ceiling: {gpu} holds about {limit.value:,.0f} ({limit.low:,.0f} to "
        f"{limit.high:,.0f}) requests of {deployment.context:,} tokens of {deployment.model}.",
    )


CHECK = RunbookCheck("RB207", "batch-above-ceiling", "warning", look, __doc__)
