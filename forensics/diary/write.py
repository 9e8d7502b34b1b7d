"""Facts and life signs on UTC → the diary of one engine.

An epoch begins where a process begins: a version banner or engine line in the log, a changed
``process_start_time_seconds`` or ``_created`` value, counters that fall. Start-up facts belong to
the epoch they were printed in; facts from metrics (``cache_config_info``) to the epoch of their
first sample.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from forensics.catalog.defaults import default_max_num_seqs
from forensics.config import Options
from forensics.diary.engines import EngineKey, EngineMap
from forensics.diary.hardware import GIB, gpu_of, machine_facts, pool_of
from forensics.diary.records import EngineDiary, Epoch, Gpu, Stated, Version
from forensics.diary.starts import SAME_START_S, first_seen, process_starts, process_stops
from forensics.diary.values import first, real, text, under, whole
from forensics.evidence import Evidence, Place

_TRUE = {"true": True, "false": False}

# What a process that states nothing of itself is taken to have in common with its neighbour.
_CARRIED = (
    "version",
    "generation",
    "model",
    "flags",
    "config",
    "memory",
    "max_num_seqs",
    "max_num_seqs_stated",
    "max_model_len",
    "max_num_batched_tokens",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "dtype",
)


def write_diary(
    evidence: Evidence, engines: EngineMap, key: EngineKey, options: Options
) -> EngineDiary:
    """Write the diary of one engine.

    Args:
        evidence: rows whose stamps are UTC.
        engines: which rows belong together.
        key: the engine.
        options: what the operator states wins over what was read.
    """
    events = engines.of_rows(evidence, evidence.events, key)
    facts = engines.of_rows(evidence, evidence.facts, key).sort(
        "stamp", "source", "offset", nulls_last=True, maintain_order=True
    )
    machine = machine_facts(evidence, key, facts)
    series = engines.of_series(evidence, key)
    starts = process_starts(evidence, events, facts, series)
    stops = process_stops(events)
    bounds = [start.time for start in starts] or [float("-inf")]
    seen = first_seen(evidence, events, series)
    if seen is not None and seen < bounds[0] - SAME_START_S:
        bounds.insert(0, float("-inf"))
    epochs: list[Epoch] = []
    for index, begin in enumerate(bounds):
        after = bounds[index + 1] if index + 1 < len(bounds) else float("inf")
        mine = facts.filter(
            (pl.col("stamp").fill_null(bounds[0]) >= begin - 1e-6)
            & (pl.col("stamp").fill_null(bounds[0]) < after - 1e-6)
        )
        mine = pl.concat([mine, machine])
        ends = [stop for stop in stops if begin < stop <= after]
        previous = epochs[-1] if epochs else None
        epoch = _epoch(mine, begin, ends[-1] if ends else after, options)
        epochs.append(_inherit(epoch, previous))
    if len(epochs) > 1 and epochs[0].version is None and epochs[0].model is None:
        epochs[0] = _inherit(epochs[0], epochs[1])
    return EngineDiary(key.name, key.server or None, key.rank, tuple(epochs))


def _epoch(facts: pl.DataFrame, begin: float, end: float, options: Options) -> Epoch:
    stated: dict[str, Stated] = {}
    every: dict[str, list[Stated]] = {}
    for source, offset, stamp, key, value in facts.select(
        "source", "offset", "stamp", "key", "value"
    ).iter_rows():
        item = Stated(value, Place(source, offset, time=stamp))
        every.setdefault(key, []).append(item)
        stated[key] = item
    flags = under(stated, "flag.")
    config = under(stated, "config.")
    memory = under(stated, "memory.")
    version_said = stated.get("vllm.version")
    version_text = version_said.value if version_said else options.vllm_version
    version = Version.parse(version_text) if version_text else None
    tp = whole(first(flags, config, "tensor_parallel_size")) or 1
    pp = whole(first(flags, config, "pipeline_parallel_size")) or 1
    gpu = gpu_of(stated, every, options)
    seqs = flags.get("max_num_seqs")
    generation = _generation(stated, version, flags)
    caching = _prefix_caching(stated, flags, config)
    utilization = first(flags, memory, "gpu_memory_utilization") or memory.get("utilization")
    utilization = utilization or stated.get("cache_config.gpu_memory_utilization")
    model = (
        Stated(options.model, None, "operator")
        if options.model
        else stated.get("model.name")
        or config.get("model")
        or flags.get("model")
        or flags.get("model_tag")
    )
    device = config["device_config"].value if "device_config" in config else None
    effective = whole(seqs) if seqs else None
    if effective is None and version is not None:
        effective = default_max_num_seqs(
            (version.major, version.minor, version.patch),
            generation,
            gpu.name,
            gpu.memory_bytes / GIB if gpu.memory_bytes else None,
            device or "cuda",
            world_size=tp * pp,
            performance_mode=text(flags.get("performance_mode")),
            max_num_batched_tokens=whole(flags.get("max_num_batched_tokens")),
        )
    return Epoch(
        start=begin if np.isfinite(begin) else None,
        end=end if np.isfinite(end) else None,
        version=version,
        generation=generation,
        model=model,
        flags=flags,
        config=config,
        memory=memory,
        gpu=gpu,
        pool=pool_of(every, stated, version, model.value if model else None),
        max_num_seqs=effective,
        max_num_seqs_stated=seqs,
        max_model_len=whole(
            stated.get("max_model_len") or flags.get("max_model_len") or config.get("max_seq_len")
        ),
        max_num_batched_tokens=whole(
            flags.get("max_num_batched_tokens") or stated.get("max_num_batched_tokens")
        ),
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=whole(first(flags, config, "data_parallel_size")) or 1,
        gpu_memory_utilization=real(utilization),
        kv_cache_dtype=text(first(flags, config, "kv_cache_dtype") or stated.get("kv_cache_dtype")),
        dtype=text(first(config, flags, "dtype")),
        prefix_caching=caching[0],
        prefix_caching_stated=caching[1],
    )


def _inherit(epoch: Epoch, other: Epoch | None) -> Epoch:
    """Fill what a restart's metrics do not repeat from the neighbouring epoch of the same server.

    Only identity is carried over (version, model, GPU); pool and flags may change at a restart.
    """
    if other is None:
        return epoch
    changes: dict[str, object] = {}
    bare = epoch.version is None and epoch.model is None and not epoch.flags
    if bare:
        for name in _CARRIED:
            changes[name] = getattr(other, name)
        if epoch.pool.blocks is None and epoch.pool.tokens is None:
            changes["pool"] = other.pool
        if epoch.prefix_caching is None:
            changes["prefix_caching"] = other.prefix_caching
    if epoch.gpu == Gpu():
        changes["gpu"] = other.gpu
    return replace(epoch, **changes) if changes else epoch  # type: ignore[arg-type]


def _generation(
    stated: Mapping[str, Stated], version: Version | None, flags: Mapping[str, Stated]
) -> str | None:
    said = stated.get("engine.generation")
    if said:
        return said.value
    if version is None:
        return None
    if version >= Version(0, 11, 0):
        return "V1"
    if version < Version(0, 6, 4):
        return "V0"
    return None


def _prefix_caching(
    stated: Mapping[str, Stated], flags: Mapping[str, Stated], config: Mapping[str, Stated]
) -> tuple[bool | None, Stated | None]:
    for item in (
        stated.get("cache_config.enable_prefix_caching"),
        config.get("enable_prefix_caching"),
        stated.get("prefix_caching.enabled"),
        flags.get("enable_prefix_caching"),
    ):
        if item is not None and item.value.lower() in _TRUE:
            return _TRUE[item.value.lower()], item
    return None, None
