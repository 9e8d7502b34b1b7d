"""A flag whose two hyphens became a dash.

## What it checks

Flags in commands that begin with an en dash, an em dash or a minus sign.

## Why it matters

Chat and office programs turn `--` into `–` or `—`. It looks right, and the shell hands the server a
word it takes for the model's name.

## Wrong

```bash
vllm serve meta-llama/Meta-Llama-3-8B –max-num-seqs 128
```

## Right

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 128
```

## When it is silent

Dashes in running text that are not the beginning of a flag of vLLM.

## Fix

`--fix` writes two hyphens.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.serve import plain_dashes


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each dash that should be two hyphens."""
    for command in document.commands:
        for argument in command.arguments:
            written = argument.name.text
            meant = plain_dashes(written)
            if meant == written:
                continue
            dashes = len(written) - len(meant.removeprefix("--"))
            start, end = argument.name.place(0, dashes)
            yield Remark(
                start,
                end,
                f"This is a typographic dash; the flag is {meant}.",
                "--" if argument.name.verbatim(0, dashes) else None,
            )


CHECK = RunbookCheck("RB209", "typographic-dash", "critical", look, __doc__)
