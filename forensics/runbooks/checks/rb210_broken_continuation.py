r"""A command over several lines that the shell reads as several commands.

## What it checks

Blanks behind the backslash at the end of a line, and lines that begin with a flag of vLLM because
the line before has no backslash.

## Why it matters

The server starts without the flags below the break, with its defaults, and the shell's complaint
about the rest scrolls away.

## Wrong

```bash
vllm serve meta-llama/Meta-Llama-3-8B
  --max-num-seqs 128
```

## Right

```bash
vllm serve meta-llama/Meta-Llama-3-8B \
  --max-num-seqs 128
```

## When it is silent

Flags of other programs.

## Fix

`--fix` takes the blanks away; a missing backslash needs a person.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each break."""
    for place in document.broken:
        if place.text.strip():
            yield Remark(
                *place.span,
                f"{place.text} begins a command of its own: the line before needs a backslash.",
            )
        else:
            whole = place.verbatim(0, len(place.text))
            yield Remark(
                *place.span,
                "Blanks behind the backslash: the command ends here.",
                "" if whole else None,
            )


CHECK = RunbookCheck("RB210", "broken-continuation", "critical", look, __doc__)
