"""The table of accelerators (`gpus.toml`), and which of them a device name or a memory size means.

A server seldom names its GPU: device names stand in kernel-configuration warnings
(``NVIDIA_H100_80GB_HBM3``), in DCGM's ``modelName``, in node labels
(``NVIDIA-A100-SXM4-80GB-SHARED``) and in what people type (``A100-80GB``). Often only the total
memory is printed, which several cards share: then all of them are candidates.
"""

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import TypedDict, cast

GIB = 1 << 30
MEMORY_TOLERANCE = 0.001
"""Slack around the totals seen in public logs: they are printed with two decimals."""
SLICED = 0.97
"""A named card with less than this share of its least total is a slice of it (MIG, vGPU)."""

_VENDOR = re.compile(r"NVIDIA|AMD|INSTINCT|TESLA|GEFORCE|QUADRO|GENERATION|GRAPHICS|CORPORATION")
_SUFFIX = re.compile(r"[-_ ](SHARED|REPLICA)$")
_SLICE = re.compile(r"\bMIG\b|MIG[-_ ]?\d|\b\d+G\.\d+GB")


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One accelerator.

    Attributes:
        name: device name as the driver gives it.
        aliases: further names, without vendor words.
        memory_gb: memory as sold, GB.
        cuda_gib: total memory as the driver reports it, GiB: what utilization multiplies.
        seen_gib: least and largest total seen, GiB.
        memory_seen: "vllm", "torch" or "marketing" (reckoned): where `cuda_gib` is from.
        bandwidth_gb_s: peak memory bandwidth, GB/s.
        fp16_tflops / fp8_tflops: dense rates; None where the card has no such units.
        sheet: the maker's document behind the sold size, bandwidth and rates.
    """

    name: str
    aliases: tuple[str, ...]
    memory_gb: float
    cuda_gib: float
    seen_gib: tuple[float, float]
    memory_seen: str
    bandwidth_gb_s: float
    fp16_tflops: float
    fp8_tflops: float | None
    sheet: str


class _Row(TypedDict, total=False):
    name: str
    also: list[str]
    memory_gb: float
    cuda_gib: float
    seen_gib: list[float]
    seen: str
    bandwidth_gb_s: float
    fp16_tflops: float
    fp8_tflops: float
    sheet: str


class _File(TypedDict):
    gpu: list[_Row]
    sheets: dict[str, str]


@cache
def gpus() -> dict[str, GpuSpec]:
    """Return all accelerators by device name, in the order of the file."""
    text = files("forensics.catalog").joinpath("gpus.toml").read_text(encoding="utf-8")
    table = cast(_File, tomllib.loads(text))
    return {
        row["name"]: GpuSpec(
            name=row["name"],
            aliases=tuple(row["also"]),
            memory_gb=float(row["memory_gb"]),
            cuda_gib=float(row["cuda_gib"]),
            seen_gib=(row["seen_gib"][0], row["seen_gib"][1]),
            memory_seen=row["seen"],
            bandwidth_gb_s=float(row["bandwidth_gb_s"]),
            fp16_tflops=float(row["fp16_tflops"]),
            fp8_tflops=row.get("fp8_tflops"),
            sheet=table["sheets"][row["sheet"]],
        )
        for row in table["gpu"]
    }


def identify(
    name: str | None, memory_bytes: float | None = None, memory_gib: float | None = None
) -> tuple[GpuSpec, ...]:
    """Return the accelerators that fit a device name, a total memory, or both.

    Args:
        name: as stated anywhere, in any spelling; None when nothing named it.
        memory_bytes: total memory as the driver reports it, when it is known in bytes.
        memory_gib: the same in GiB; not looked at when `memory_bytes` is given.

    Returns:
        All that fit, the likeliest first; none when the name is unknown, when nothing was given,
        when it is a MIG slice, or when name and memory cannot both be true.

    >>> [gpu.name for gpu in identify("NVIDIA_H100_80GB_HBM3")]
    ['NVIDIA H100 80GB HBM3']
    >>> [gpu.name for gpu in identify("A100-80GB")]
    ['NVIDIA A100-SXM4-80GB', 'NVIDIA A100 80GB PCIe']
    """
    gib = memory_gib if memory_bytes is None else memory_bytes / GIB
    named = _named(name) if name is not None and name.strip() else None
    if named is None:
        return () if gib is None else tuple(g for g in gpus().values() if _has(g, gib))
    if gib is None:
        return named
    return tuple(gpu for gpu in named if _plausible(gpu, gib))


def conflicting(name: str, memory_gib: float) -> tuple[GpuSpec, ...]:
    """Return the cards a name means when none of them can have that memory; else nothing."""
    named = _named(name)
    return named if named and not any(_plausible(gpu, memory_gib) for gpu in named) else ()


def best(name: str) -> GpuSpec | None:
    """Return the likeliest accelerator behind a name; None when it is unknown."""
    return next(iter(_named(name)), None)


def near(name: str) -> tuple[str, ...]:
    """Return known spellings near to one that is not known, the nearest first.

    >>> near("H10O")
    ('H100', 'H800', 'H200')
    """
    known = {
        _key(spelling.upper()): spelling
        for gpu in gpus().values()
        for spelling in (*gpu.aliases, gpu.name)
    }
    return tuple(known[key] for key in get_close_matches(_key(name.upper()[:200]), known, 3, 0.6))


def _named(name: str) -> tuple[GpuSpec, ...]:
    text = name.strip().upper()[:200]
    if _SLICE.search(text):
        return ()
    return _by_key().get(_key(text), ())


@cache
def _by_key() -> dict[str, tuple[GpuSpec, ...]]:
    found: dict[str, list[GpuSpec]] = {}
    for gpu in gpus().values():
        # The driver's own name is certain; an alias may be shared.
        for spelling in (gpu.name, *gpu.aliases):
            entry = found.setdefault(_key(spelling.upper()), [])
            if gpu not in entry:
                entry.append(gpu)
    certain = {_key(gpu.name.upper()): (gpu,) for gpu in gpus().values()}
    return {key: certain.get(key, tuple(entries)) for key, entries in found.items()}


def _key(text: str) -> str:
    plain = _VENDOR.sub(" ", _SUFFIX.sub("", text))
    return re.sub(r"[^A-Z0-9]+", "", plain)


def _has(gpu: GpuSpec, gib: float) -> bool:
    low, high = gpu.seen_gib
    return low * (1 - MEMORY_TOLERANCE) <= gib <= high * (1 + MEMORY_TOLERANCE)


def _plausible(gpu: GpuSpec, gib: float) -> bool:
    # Drivers and ECC move the total; nobody gets more than was sold (in binary units).
    return gpu.seen_gib[0] * SLICED <= gib <= max(gpu.seen_gib[1], gpu.memory_gb) * 1.001
