"""A document, or a part of one, that could not be read.

## What it checks

Rule files, manifests and dashboards that are no YAML or JSON, YAML blocks in Markdown that are
none, and settings in front matter and comments that are no settings.

## Why it matters

What cannot be read cannot be checked, and what a program cannot read a program will not load
either.

## Wrong

```yaml
- alert: Preemptions
  expr: rate(vllm:num_preemptions_total[5m]) > 0
 for: 5m
```

## Right

```yaml
- alert: Preemptions
  expr: rate(vllm:num_preemptions_total[5m]) > 0
  for: 5m
```

## When it is silent

Templates (`{{ … }}`), which become YAML only when rendered; files that do not mention vLLM.
"""

from collections.abc import Iterator

from forensics.runbooks.interface import Document, Remark, RunbookCheck


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each part that could not be read."""
    for part in document.unread:
        reason = part.reason[:1].upper() + part.reason[1:]
        yield Remark(part.start, part.end, f"Not read: {reason}.")


CHECK = RunbookCheck("RB903", "document-unread", "warning", look, __doc__)
