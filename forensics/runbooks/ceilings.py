"""The batch ceiling of the deployment that a document states, from `forensics.capacity`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from forensics.capacity.plan import Plan, Wanted, ceiling_for
from forensics.catalog.gpus import identify
from forensics.catalog.models import geometry
from forensics.catalog.versions import Version
from forensics.runbooks.interface import Document, Stated
from forensics.runbooks.serve import ServeCommand

T = TypeVar("T")
# Korean particles stand right behind a name, where \b sees no boundary.
_GPU = re.compile(
    r"(?<![A-Za-z0-9])(?:RTX[ -]?(?:A|PRO )?|[AHBLTV]|GH|GB|MI)\d{1,4}[A-Z]{0,2}"
    r"(?:[- ](?:SXM\d?|PCIe|NVL|Ada|Ti|SUPER|\d{2,3} ?GB))*(?![A-Za-z0-9])"
)
_MODEL = re.compile(r"(?<![\w./-])[A-Za-z][\w./-]{0,80}?\d[bB](?![A-Za-z0-9])(?:-[A-Za-z0-9.]+)*")
_TOKENS = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d+)(k|K)?[- ]?(?:tokens?(?![A-Za-z])|토큰)", re.IGNORECASE
)
_LABELLED = re.compile(
    r"(?:context|컨텍스트|문맥)[*`|]*(?:s? of|은|는| is)?\s*[:=|]?\s*"
    r"(\d{1,3}(?:,\d{3})+|\d+)(k|K)?(?![A-Za-z0-9_]|[.,]\d)",
    re.IGNORECASE,
)
_LONGEST = re.compile(r"max|window|limit|최대", re.IGNORECASE)
"""What a model or server can take at most is not what a request holds."""
_CONTEXT = re.compile(
    r"context|prompt|request|sequence|conversation|average|typical|mean"
    r"|컨텍스트|문맥|프롬프트|요청|평균",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a ceiling needs to know, all of it stated.

    Attributes:
        gpu: as written; may fit several cards.
    """

    gpu: str
    model: str
    context: int


def stated_for(document: Document, command: ServeCommand) -> Deployment | None:
    """Return the deployment a command is for: its flags, then settings, then the text around it."""
    stated = document.stated
    at = command.head.span[0]
    model = stated.model if command.model is None else command.model.text
    model = model or _nearest(_models(document), at)
    if model is None:
        return None
    gpu = stated.gpu or _nearest(_gpus(document), at)
    context = stated.context or _nearest(_contexts(document), at)
    if gpu is None or context is None:
        return None
    return Deployment(gpu, model, context)


def plans(wanted: Wanted) -> tuple[Plan, ...]:
    """Return the ceiling for each card that a GPU name fits; one plan when it fits none."""
    cards = identify(wanted.gpu) if wanted.gpu else ()
    if not cards:
        return (_plan(wanted),)
    return tuple(_plan(replace(wanted, gpu=card.name)) for card in cards)


@lru_cache(maxsize=256)
def _plan(wanted: Wanted) -> Plan:
    return ceiling_for(wanted)


def wanted_by(
    deployment: Deployment, command: ServeCommand, release: Version, stated: Stated
) -> Wanted:
    """Return the question that a command's flags put about a deployment."""
    utilization = command.value("--gpu-memory-utilization")
    return Wanted(
        gpu=deployment.gpu,
        model=deployment.model,
        context=float(deployment.context),
        max_model_len=_whole(command.value("--max-model-len")),
        kv_dtype=command.value("--kv-cache-dtype"),
        dtype=command.value("--dtype"),
        tensor_parallel=_whole(command.value("--tensor-parallel-size")) or stated.tp or 1,
        pipeline_parallel=_whole(command.value("--pipeline-parallel-size")) or 1,
        utilization=_share(utilization),
        version=release.numbers,
    )


def _whole(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() and int(value) > 0 else None


def _share(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"0?\.\d+|1(?:\.0*)?", value):
        return None
    return float(value)


def _nearest(found: Iterator[tuple[int, T]], at: int) -> T | None:
    """The last one before a place, else the first behind it."""
    before = after = None
    for offset, value in sorted(found, key=lambda pair: pair[0]):
        if offset <= at:
            before = value
        elif after is None:
            after = value
    return after if before is None else before


def _gpus(document: Document) -> Iterator[tuple[int, str]]:
    """Yield where one card is named: in ceiling blocks, in lines that name no second one."""
    for offset, name, value in _block_arguments(document):
        if name == "gpu":
            yield offset, value
    for line in document.prose:
        names = [name for name in dict.fromkeys(_GPU.findall(line.text.text)) if identify(name)]
        if len(names) == 1:
            yield line.text.offsets[0], names[0]


def _models(document: Document) -> Iterator[tuple[int, str]]:
    """Yield where one model of the table is named: in lines that name no second one."""
    for line in document.prose:
        names = [name for name in dict.fromkeys(_MODEL.findall(line.text.text)) if geometry(name)]
        if len(names) == 1:
            yield line.text.offsets[0], names[0]


def _contexts(document: Document) -> Iterator[tuple[int, int]]:
    """Yield where the tokens of a request are given: in blocks, in lines with one length."""
    for offset, name, value in _block_arguments(document):
        if name == "context" and value.isdecimal():
            yield offset, int(value)
    for line in document.prose:
        text = line.text.text
        found = _TOKENS.findall(text)
        if not found and not _LONGEST.search(text):
            found = _LABELLED.findall(text)
        lengths = {int(number.replace(",", "")) * (1024 if unit else 1) for number, unit in found}
        if len(lengths) == 1 and _CONTEXT.search(text):
            (length,) = lengths
            if length >= 16:
                yield line.text.offsets[0], length


def _block_arguments(document: Document) -> Iterator[tuple[int, str, str]]:
    for block in document.blocks:
        for name, value in block.arguments:
            yield value.offsets[0], name, value.text
