"""A ceiling block that the tool cannot fill.

## What it checks

Opening marks without a closing one, arguments that are none, a GPU or model that is not in the
tables, and deployments for which no ceiling can be computed, with the reason.

## Why it matters

Such a block looks as if it were kept current, and is not.

## Wrong

```markdown
<!-- forensics:ceiling gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B -->
<!-- /forensics:ceiling -->
```

## Right

```markdown
<!-- forensics:ceiling gpu=A100-80GB model=meta-llama/Meta-Llama-3-8B context=2048 -->
<!-- /forensics:ceiling -->
```

## When it is silent

A stale table is [RB501](RB501-ceiling-stale.md).
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each block without a table."""
    if not document.blocks:
        return
    from forensics.runbooks.ceiling_table import BlockFault, table  # brings the tables

    for block in document.blocks:
        if block.body is None:
            yield Remark(
                *block.opening.span,
                "Nothing closes this block: write <!-- /forensics:ceiling --> below it.",
            )
            continue
        found = table(document, block)
        if isinstance(found, BlockFault):
            yield Remark(*found.place.span, found.message)


CHECK = RunbookCheck("RB502", "ceiling-block", "warning", look, __doc__)
