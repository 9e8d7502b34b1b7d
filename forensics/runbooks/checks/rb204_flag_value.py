"""A flag with a value it cannot take.

## What it checks

Whole numbers where vLLM wants whole numbers, shares from 0 to 1, choices, JSON, and values behind
switches that take none or missing behind flags that need one.

## Why it matters

The server refuses to start, or starts with something else than was meant: `--gpu-memory-utilization
90` is an error, and so is `--max-num-seqs 0`.

## Wrong

```bash
vllm serve meta-llama/Meta-Llama-3-8B --gpu-memory-utilization 90
```

## Right

```bash
vllm serve meta-llama/Meta-Llama-3-8B --gpu-memory-utilization 0.9
```

## When it is silent

Where the value is a variable or a placeholder.
"""

import json
import re
from collections.abc import Iterator

from forensics.catalog.flags_catalog import Flag
from forensics.runbooks.flag_facts import FlagUse, given
from forensics.runbooks.interface import Document, Remark, RunbookCheck

_SIZE = re.compile(r"\d+(?:\.\d+)?[kKmMgGtT]?i?[bB]?")


def look(document: Document) -> Iterator[Remark]:
    """Yield a remark for each value that does not fit."""
    for use in given(document):
        argument = use.argument
        if argument.open:
            continue
        if argument.value is None:
            if use.command.complete and use.flag.kind != "bool":
                yield use.remark(f"{use.flag.name} needs a value.")
            continue
        fault = _fault(use, argument.value.text)
        if fault:
            yield Remark(*argument.value.span, fault)


def _fault(use: FlagUse, value: str) -> str | None:
    flag = use.flag
    match flag.kind:
        case "bool":
            if value.lower() in ("true", "false"):
                return None
            return f"{flag.name} is a switch and takes no value."
        case "int":
            return _of_int(flag, value)
        case "float":
            ok = re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", value)
            return None if ok else f"{flag.name} takes a number, not {value!r}."
        case "fraction":
            return _of_fraction(flag, value)
        case "size" | "length":
            special = flag.kind == "length" and value in ("auto", "-1")
            if special or _SIZE.fullmatch(value):
                return None
            return f"{flag.name} takes a number, with or without a unit, not {value!r}."
        case "choice":
            if value in flag.choices:
                return None
            return f"{flag.name} takes one of {', '.join(flag.choices)}, not {value!r}."
        case "json":
            return _of_json(use, value)
        case "text":
            return None


def _of_int(flag: Flag, value: str) -> str | None:
    if not re.fullmatch(r"-?\d+", value):
        return f"{flag.name} takes a whole number, not {value!r}."
    if int(value) < 0 or (value == "0" and flag.name == "--max-num-seqs"):
        return f"{flag.name} {value} cannot be: it takes at least 1."
    return None


def _of_fraction(flag: Flag, value: str) -> str | None:
    if not re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", value):
        return f"{flag.name} takes a share from 0 to 1, not {value!r}."
    number = float(value)
    if number > 1:
        percent = f": {value} % is {number / 100:g}" if number <= 100 else ""
        return f"{flag.name} takes a share from 0 to 1{percent}."
    return None


def _of_json(use: FlagUse, value: str) -> str | None:
    dotted = "." in use.argument.name.text.lstrip("-")
    if dotted or not value.startswith(("{", "[")):
        return None  # single keys, and paths in older releases
    try:
        json.loads(value)
    except json.JSONDecodeError as error:
        return f"{use.flag.name} takes JSON, and this is none: {error.msg}."
    return None


CHECK = RunbookCheck("RB204", "flag-value", "critical", look, __doc__)
