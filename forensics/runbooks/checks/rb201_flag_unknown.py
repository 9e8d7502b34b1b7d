"""A server flag that no release of vLLM has.

## What it checks

Flags of commands that start a server: `vllm serve`, `python -m vllm.entrypoints…`, containers of a
vLLM image in Kubernetes manifests and compose files, `docker run`.

## Why it matters

The server refuses to start with an unknown flag, and a runbook is usually read when it must start
at once.

## Wrong

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-sequences 128
```

## Right

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 128
```

## When it is silent

Single flags in running text, which may belong to another program. Flags that the catalogue knows
without their releases count as known.
"""

import difflib
from collections.abc import Iterator

from forensics.catalog.flags_catalog import exists, flag, known_names
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.serve import plain_dashes


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each unknown flag of a server start."""
    for command in document.commands:
        if not command.complete:
            continue
        for argument in command.arguments:
            name = plain_dashes(argument.name.text)
            if not name.startswith("--") or flag(name) is not None or exists(name):
                continue
            near = difflib.get_close_matches(
                name.replace("_", "-"), list(known_names()), 1, cutoff=0.7
            )
            hint = f" Did you mean {near[0]}?" if near else ""
            yield Remark(*argument.name.span, f"No vLLM release has a flag {name}.{hint}")


CHECK = RunbookCheck("RB201", "flag-unknown", "critical", look, __doc__)
