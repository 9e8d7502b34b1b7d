"""The table that stands in a `forensics:ceiling` block: arguments in, Markdown out."""

from collections.abc import Callable
from dataclasses import dataclass

from forensics.capacity.bounds import Reckoned
from forensics.capacity.plan import Plan, Wanted
from forensics.catalog.messages import render
from forensics.runbooks.ceilings import plans
from forensics.runbooks.interface import CeilingBlock, Document
from forensics.runbooks.text import Mapped

_REQUIRED = ("gpu", "model", "context")


@dataclass(frozen=True, slots=True)
class BlockFault:
    """Why a block has no table: what is wrong, and where."""

    place: Mapped
    message: str


def _positive(text: str) -> int:
    number = int(text.replace(",", ""))
    if number < 1:
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise ValueError(text)
    return number


def _seconds(text: str) -> float:
    for unit, factor in (("ms", 0.001), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


_READERS: dict[str, tuple[str, Callable[[str], str | int | float]]] = {
    "gpu": ("gpu", str),
    "model": ("model", str),
    "context": ("context", _positive),
    "output": ("output", _positive),
    "shared-prefix": ("shared_prefix", _positive),
    "tp": ("tensor_parallel", _positive),
    "pp": ("pipeline_parallel", _positive),
    "utilization": ("utilization", _share),
    "kv-dtype": ("kv_dtype", str),
    "slo-itl": ("slo_itl_s", _seconds),
    "slo-ttft": ("slo_ttft_s", _seconds),
}
"""What an opening mark may say: name, field of the question, how to read the value."""


def table(document: Document, block: CeilingBlock) -> str | BlockFault:
    """Return what the block should hold, with line breaks and indentation as in its file."""
    wanted = question(document, block)
    if isinstance(wanted, BlockFault):
        return wanted
    found = plans(wanted)
    plan = found[0]
    if plan.limit is None or plan.pool is None:
        reason = "no ceiling" if plan.refused is None else render(plan.refused)
        return BlockFault(block.opening, f"No ceiling can be computed: {reason}")
    newline = "\r\n" if "\r\n" in document.lines.text else "\n"
    lines = _lines(plan, wanted)
    return "".join(f"{block.indent}{line}".rstrip(" ") + newline for line in lines)


def question(document: Document, block: CeilingBlock) -> Wanted | BlockFault:
    """Return the question an opening mark puts; the document fills what it leaves out."""
    stated = document.stated
    from_document = {
        "gpu": stated.gpu,
        "model": stated.model,
        "context": stated.context,
        "tensor_parallel": stated.tp,
    }
    values: dict[str, str | int | float] = {
        name: given for name, given in from_document.items() if given is not None
    }
    for name, value in block.arguments:
        reader = _READERS.get(name)
        if reader is None:
            return BlockFault(
                value, f"'{name}' is nothing a ceiling depends on; there are {', '.join(_READERS)}."
            )
        try:
            values[reader[0]] = reader[1](value.text)
        except ValueError:
            return BlockFault(value, f"{value.text!r} is no value for {name}.")
    missing = [name for name in _REQUIRED if name not in values]
    if missing:
        return BlockFault(block.opening, f"The block does not say its {' and '.join(missing)}.")
    values["context"] = float(values["context"])
    release = document.target.releases[-1].numbers
    return Wanted(**values, version=release)  # type: ignore[arg-type]


def _lines(plan: Plan, wanted: Wanted) -> list[str]:
    if plan.limit is None or plan.pool is None:
        return []
    gpu = wanted.gpu if plan.gpu is None else plan.gpu.name
    limit = plan.limit
    pool = plan.pool
    lines = [
        "",
        f"**`--max-num-seqs {limit.value:.0f}`** ({limit.low:.0f} to {limit.high:.0f}) for "
        f"{gpu}, {wanted.model}, {wanted.context:,.0f} tokens per request"
        + _extras(wanted)
        + f". KV pool: about {pool.tokens:,} tokens.",
        "",
        "| bound | requests | from | to | formula |",
        "|---|---:|---:|---:|---|",
    ]
    lines += [_row(bound, binding=bound.name == plan.binding) for bound in plan.bounds]
    return [*lines, ""]


def _extras(wanted: Wanted) -> str:
    parts = [
        ("output", wanted.output, "{:,.0f} of them generated"),
        ("shared_prefix", wanted.shared_prefix, "{:,.0f} shared"),
        (
            "tensor_parallel",
            wanted.tensor_parallel if wanted.tensor_parallel > 1 else None,
            "TP {}",
        ),
        ("utilization", wanted.utilization, "utilization {:g}"),
        ("kv_dtype", wanted.kv_dtype, "{} KV cache"),
        ("slo_itl_s", wanted.slo_itl_s, "{:g} s between tokens at most"),
        ("slo_ttft_s", wanted.slo_ttft_s, "{:g} s to the first token at most"),
    ]
    return "".join(f", {form.format(value)}" for _, value, form in parts if value is not None)


def _row(bound: Reckoned, *, binding: bool) -> str:
    mark = "**" if binding else ""
    formula = bound.formula.replace("|", "\\|")
    return (
        f"| {mark}{bound.name}{mark} | {mark}{bound.value:,.0f}{mark} | {bound.low:,.0f} "
        f"| {bound.high:,.0f} | `{formula}` |"
    )
