"""Flags that contradict each other in one command.

## What it checks

Pairs that size the same thing twice or switch the same thing on and off; the same flag given twice
with different values; a step budget below the number of sequences; a context longer than the step
budget with chunked prefill switched off.

## Why it matters

The server refuses to start, or one of the two wins without a word, and the reader does not know
which.

## Wrong

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 512 --max-num-batched-tokens 256
```

## Right

```bash
vllm serve meta-llama/Meta-Llama-3-8B --max-num-seqs 256 --max-num-batched-tokens 2048
```

## When it is silent

Where a value is a variable.
"""

from collections.abc import Iterator

from forensics.catalog.flags_catalog import conflicts, flag
from forensics.runbooks.interface import Document, Remark, RunbookCheck
from forensics.runbooks.serve import Argument, ServeCommand, plain_dashes


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each contradiction, at the later flag."""
    for command in document.commands:
        if not command.complete:
            continue
        yield from _pairs(command)
        yield from _twice(command)
        yield from _budget(command)


def _pairs(command: ServeCommand) -> Iterator[Remark]:
    for conflict in conflicts():
        found = [command.given(name) for name in conflict.flags]
        first, second = found
        if first is not None and second is not None:
            later = max(first, second, key=lambda one: one.name.span)
            names = " and ".join(conflict.flags)
            yield Remark(*later.name.span, f"{names} contradict each other: {conflict.why}.")


def _twice(command: ServeCommand) -> Iterator[Remark]:
    seen: dict[str, Argument] = {}
    for argument in command.arguments:
        written = plain_dashes(argument.name.text)
        known = flag(written)
        if known is None or "." in written.lstrip("-"):
            continue
        before = seen.get(known.name)
        seen[known.name] = argument
        if before is None:
            continue
        negated = [one.name.text.startswith("--no-") for one in (before, argument)]
        values = [None if one.value is None else one.value.text for one in (before, argument)]
        if values[0] != values[1] or negated[0] != negated[1]:
            yield Remark(
                *argument.name.span,
                f"{known.name} is given twice with different values; the last one wins.",
            )


def _budget(command: ServeCommand) -> Iterator[Remark]:
    budget = _number(command, "--max-num-batched-tokens")
    seqs = _number(command, "--max-num-seqs")
    place = command.given("--max-num-batched-tokens")
    if budget is None or place is None or place.value is None:
        return
    if seqs is not None and budget < seqs:
        yield Remark(
            *place.value.span,
            f"A step of {budget} tokens cannot serve --max-num-seqs {seqs}: each running request "
            "takes at least one.",
        )
    length = _number(command, "--max-model-len")
    chunked = command.given("--enable-chunked-prefill")
    off = chunked is not None and (
        chunked.name.text.startswith("--no-")
        or (chunked.value is not None and chunked.value.text.lower() == "false")
    )
    if off and length is not None and budget < length:
        yield Remark(
            *place.value.span,
            f"Without chunked prefill a prompt of --max-model-len {length} does not fit into a "
            f"step of {budget} tokens: the server refuses to start.",
        )


def _number(command: ServeCommand, name: str) -> int | None:
    value = command.value(name)
    return int(value) if value is not None and value.isdecimal() else None


CHECK = RunbookCheck("RB206", "contradictory-flags", "warning", look, __doc__)
