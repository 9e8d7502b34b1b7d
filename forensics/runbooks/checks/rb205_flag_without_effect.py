"""A flag that the V1 engine takes no notice of.

## What it checks

`--swap-space`, `--preemption-mode`, `--num-scheduler-steps` and the like in commands for releases
that run V1 (0.8.0 and later unless `VLLM_USE_V1=0`), as long as the release still accepts them.

## Why it matters

V1 never swaps and knows one way to preempt: recompute. Somebody raises the swap space during an
incident, restarts all replicas with cold caches, and nothing gets better. In 0.8 to 0.10 some of
these flags silently bring back the V0 engine, which is a larger change than was meant.

## Wrong

For vLLM 0.11.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --swap-space 16
```

## Right

For vLLM 0.11.0:

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 128
```

## When it is silent

For V0 releases, for `VLLM_USE_V1=0`, and where the flag is gone, which is
[RB202](RB202-flag-removed.md).
"""

from collections.abc import Iterator

from forensics.runbooks.flag_facts import given, instead
from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each flag of the V0 engine on V1."""
    for use in given(document):
        if not use.flag.v0_only:
            continue
        idle = [
            release
            for release in use.target.releases
            if release in use.flag.span and use.target.generation(release) == "V1"
        ]
        if idle:
            yield use.remark(
                f"{use.flag.name} does nothing on the V1 engine, which vLLM {use.target} runs."
                f"{instead(use.flag)}"
            )


CHECK = RunbookCheck("RB205", "flag-without-effect", "warning", look, __doc__)
