"""Facts of one epoch → what it ran on: the accelerator and the KV pool."""

from collections.abc import Mapping

import polars as pl

from forensics.catalog.gpus import identify
from forensics.catalog.models import geometry
from forensics.config import Options
from forensics.diary.engines import EngineKey
from forensics.diary.records import Gpu, KvPool, Stated, Version
from forensics.diary.values import real, whole
from forensics.evidence import Evidence

GIB = 1 << 30
_PRINTS_CONCURRENCY = Version(0, 21, 0)
# Rounding of the printed concurrency moves the printed size by less than this (guess).
_ROUNDING = 1.02


def machine_facts(evidence: Evidence, key: EngineKey, own: pl.DataFrame) -> pl.DataFrame:
    """Give what exporters of the machine say of its GPU: they have instances of their own.

    They belong to the engine when they run on its host, or when all that is known of GPUs is one
    kind. A machine does not change at a restart, so these facts hold for every epoch.
    """
    gpu = evidence.facts.filter(pl.col("key").str.starts_with("gpu."))
    gpu = gpu.join(
        own.select("source", "offset", "key"), on=["source", "offset", "key"], how="anti"
    )
    host = pl.col("instance").str.split(":").list.first()
    hosts = [name.split(":")[0] for name in key.instances if name]
    here = gpu.filter(host.is_in(hosts))
    if here.height:
        return here
    names = gpu.filter(pl.col("key") == "gpu.name")["value"].n_unique()
    return gpu if names <= 1 else gpu.clear()


def gpu_of(
    stated: Mapping[str, Stated], every: Mapping[str, list[Stated]], options: Options
) -> Gpu:
    """Name the accelerator: by the operator, by device names, by total memory, or not at all."""
    total = real(stated.get("memory.total_gib")) or real(stated.get("gpu.total_gib"))
    mib = real(stated.get("gpu.total_mib"))
    memory = int(total * GIB) if total else int(mib * (1 << 20)) if mib else None
    if options.gpu:
        names = _names(options.gpu, None)
        return Gpu(names[0] if names else options.gpu, names, memory, "operator", None)
    for item in every.get("gpu.name", []):
        names = _names(item.value, memory) or _names(item.value, None)
        name = names[0] if len(names) == 1 else item.value
        return Gpu(name, names, memory, "device name", item.place)
    said = stated.get("memory.total_gib") or stated.get("gpu.total_gib")
    said = said or stated.get("gpu.total_mib")
    if memory is not None and said is not None:
        names = _names(None, memory)
        return Gpu(names[0] if len(names) == 1 else None, names, memory, "total memory", said.place)
    return Gpu()


def _names(name: str | None, memory_bytes: int | None) -> tuple[str, ...]:
    return tuple(gpu.name for gpu in identify(name, memory_bytes))


def pool_of(
    every: Mapping[str, list[Stated]],
    stated: Mapping[str, Stated],
    version: Version | None = None,
    model: str | None = None,
) -> KvPool:
    """Give the pool; ranks may differ, and the smallest one counts.

    From 0.21 on the printed size is the concurrency times `max_model_len`: for a model whose layers
    do not all keep every token it is more than the pool holds, so blocks are not worked out from it
    and blocks that were stated win over it (log reference, section 5).

    Args:
        every: all statements by key.
        stated: the one that counts, by key.
        version: of the epoch; None when unknown.
        model: name as stated.
    """
    blocks_said = _smallest(
        every, "cache_config.num_gpu_blocks", "pool.num_gpu_blocks", "pool.override_blocks"
    )
    tokens_said = _smallest(every, "pool.tokens", "cache_config.kv_cache_size_tokens")
    size_said = (
        stated.get("cache_config.block_size")
        or stated.get("flag.block_size")
        or stated.get("block_size")
    )
    blocks, size = whole(blocks_said), whole(size_said)
    tokens = whole(tokens_said)
    chosen = tokens_said
    if blocks and size and (tokens is None or "pool.tokens" not in every):
        tokens, chosen = blocks * size, blocks_said
    printed = version is not None and version >= _PRINTS_CONCURRENCY
    if printed and blocks and size and tokens and tokens > _ROUNDING * blocks * size:
        tokens, chosen = blocks * size, blocks_said
    physical = not (printed and _keeps_less(model))
    if size is None and blocks and tokens and tokens % blocks == 0 and physical:
        size = tokens // blocks
    if blocks is None and tokens and size and physical:
        blocks = tokens // size
    return KvPool(
        tokens=tokens,
        blocks=blocks,
        block_size=size,
        max_concurrency=real(stated.get("pool.max_concurrency")),
        source="stated by the server" if chosen else None,
        place=chosen.place if chosen else None,
    )


def _keeps_less(model: str | None) -> bool:
    """Tell whether a model has layers that keep a window or a state instead of every token."""
    known = geometry(model)
    return known is not None and bool(known.window_layers or known.linear_layers)


def _smallest(every: Mapping[str, list[Stated]], *keys: str) -> Stated | None:
    for key in keys:
        values = [item for item in every.get(key, []) if whole(item)]
        if values:
            return min(values, key=lambda item: whole(item) or 0)
    return None
