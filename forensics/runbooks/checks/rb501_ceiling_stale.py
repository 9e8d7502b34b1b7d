"""A ceiling table that is not what the tool computes now.

## What it checks

Blocks between `<!-- forensics:ceiling gpu=… model=… context=… -->` and
`<!-- /forensics:ceiling -->` against the ceiling for what their opening mark says.

## Why it matters

A table of limits is right for one GPU, one model and one kind of request. Somebody changes the
model in the heading, and the numbers below stay.

## Wrong

```markdown
<!-- forensics:ceiling gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B context=2048 -->
| bound | requests |
|---|---|
| B_safe | 47 |
<!-- /forensics:ceiling -->
```

## Right

Run `forensics lint --fix` and commit the table it writes.

## When it is silent

Outside the marks.

## Fix

`--fix` writes the table. Arguments of the mark: `gpu`, `model`, `context` (they may also stand in
the front matter), `output`, `shared-prefix`, `tp`, `pp`, `utilization`, `kv-dtype`, `slo-itl`,
`slo-ttft`. The release is that of the document.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each block that holds something else than its table."""
    if not document.blocks:
        return
    from forensics.runbooks.ceiling_table import BlockFault, table  # brings the tables

    for block in document.blocks:
        if block.body is None:
            continue
        expected = table(document, block)
        if isinstance(expected, BlockFault) or expected == block.body.text:
            continue
        state = "is not what the tool computes" if block.body.text.strip() else "is empty"
        yield Remark(*block.body.span, f"This ceiling block {state}.", expected)


CHECK = RunbookCheck("RB501", "ceiling-stale", "warning", look, __doc__)
