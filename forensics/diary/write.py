"""Facts and life signs on UTC → the diary of one engine.

An epoch begins where a process begins: a version banner or engine line in the log, a changed
``process_start_time_seconds`` or ``_created`` value, counters that fall. Start-up facts belong to
the epoch they were printed in; facts from metrics (``cache_config_info``) to the epoch of their
first sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from forensics.catalog.defaults import default_max_num_seqs
from forensics.catalog.gpus import identify
from forensics.config import Options
from forensics.diary.engines import EngineKey, EngineMap
from forensics.diary.records import EngineDiary, Epoch, Gpu, KvPool, Stated, Version
from forensics.evidence import Evidence, Place

# Metrics show one start by several values (process start, creation stamps) within a minute or so.
_SAME_START_S = 5.0
# Weights load between the lines of one start; without any sign of life in between, lines this far
# apart still belong to it.
_LONGEST_START_S = 1800.0
_GIB = 1 << 30
_TRUE = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class _Start:
    time: float
    place: Place | None


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
    machine = _machine_facts(evidence, key, facts)
    series = engines.of_series(evidence, key)
    starts = _starts(evidence, events, facts, series)
    stops = _stops(events)
    bounds = [start.time for start in starts] or [float("-inf")]
    first_seen = _first_seen(evidence, events, series)
    if first_seen is not None and first_seen < bounds[0] - _SAME_START_S:
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


def _machine_facts(evidence: Evidence, key: EngineKey, own: pl.DataFrame) -> pl.DataFrame:
    """Give what exporters of the machine say of its GPU: they have instances of their own.

    They belong to the engine when they run on its host, or when all that is known of GPUs is one
    kind. A machine does not change at a restart, so these facts hold for every epoch.
    """
    gpu = evidence.facts.filter(pl.col("key").str.starts_with("gpu."))
    gpu = gpu.join(own.select("source", "offset", "key"), on=["source", "offset", "key"], how="anti")
    host = pl.col("instance").str.split(":").list.first()
    hosts = [name.split(":")[0] for name in key.instances if name]
    here = gpu.filter(host.is_in(hosts))
    if here.height:
        return here
    names = gpu.filter(pl.col("key") == "gpu.name")["value"].n_unique()
    return gpu if names <= 1 else gpu.clear()


def _starts(
    evidence: Evidence, events: pl.DataFrame, facts: pl.DataFrame, series: pl.DataFrame
) -> list[_Start]:
    found: list[_Start] = []
    logged = events.filter(
        pl.col("kind").is_in(["process_start", "startup_logo", "startup_version"])
        & pl.col("stamp").is_not_null()
    )
    found += [
        _Start(stamp, Place(source, offset))
        for stamp, source, offset in logged.select("stamp", "source", "offset").iter_rows()
    ]
    versions = facts.filter(
        (pl.col("key") == "vllm.version")
        & pl.col("stamp").is_not_null()
        & pl.col("offset").is_not_null()
        & pl.col("source").is_in(evidence.events["source"].unique().to_list())
    )
    found += [
        _Start(stamp, Place(source, offset))
        for stamp, source, offset in versions.select("stamp", "source", "offset").iter_rows()
    ]
    signs = events.filter(
        pl.col("kind").is_in(["stats_periodic", "process_stop", "engine_death"])
        & pl.col("stamp").is_not_null()
    )["stamp"].to_numpy()
    in_log = _separate(sorted(found, key=lambda start: start.time), np.sort(signs))
    counted = _metric_starts(evidence, series)
    # The metrics' own start time precedes the log's first line by the import time; the log wins.
    extra = [
        start
        for start in counted
        if not any(-30.0 < known.time - start.time < 600.0 for known in in_log)
    ]
    return sorted([*in_log, *extra], key=lambda start: start.time)


def _separate(starts: list[_Start], signs: np.ndarray) -> list[_Start]:
    """Keep the first line of each start: another one begins only after a sign of life or death.

    Args:
        starts: lines that a start prints, in order of time.
        signs: UTC s of stats lines and ends, increasing.
    """
    kept: list[_Start] = []
    last = float("-inf")
    for start in starts:
        lived = np.searchsorted(signs, start.time) > np.searchsorted(signs, last, side="right")
        if not kept or lived or start.time - last > _LONGEST_START_S:
            kept.append(start)
        last = start.time
    return kept


def _metric_starts(evidence: Evidence, series: pl.DataFrame) -> list[_Start]:
    """Give the process starts that metrics prove: a changed start time or creation stamp."""
    wanted = series.filter(
        (pl.col("metric") == "process_start_time_seconds")
        | pl.col("metric").is_in(
            ["vllm:prompt_tokens_created", "vllm:generation_tokens_created",
             "vllm:prefix_cache_queries_created"]
        )
    )  # fmt: skip
    if not wanted.height:
        return []
    points = evidence.samples.join(wanted.select("series", "source", "metric"), on="series")
    starts: list[_Start] = []
    values = points.group_by("value").agg(
        pl.col("source").first(), pl.col("metric").first(), pl.col("stamp").min()
    )
    distinct = sorted(values.iter_rows(), key=lambda row: float(row[0]))
    lived = np.sort(points["stamp"].to_numpy())
    for value, source, metric, stamp in distinct:
        # Process start and creation stamps of one start lie as far apart as loading takes; only a
        # value with samples between it and the previous one is another process.
        if not value or (starts and _between(lived, starts[-1].time, value) == 0):
            continue
        if not starts or value - starts[-1].time > _SAME_START_S:
            starts.append(_Start(float(value), Place(source, series=metric, time=stamp)))
    return starts


def _between(times: np.ndarray, low: float, high: float) -> int:
    return int(np.searchsorted(times, high) - np.searchsorted(times, low, side="right"))


def _stops(events: pl.DataFrame) -> list[float]:
    stops = events.filter(
        pl.col("kind").is_in(["process_stop", "shutdown", "engine_death"])
        & pl.col("stamp").is_not_null()
    )
    return sorted(stops["stamp"].to_list())


def _first_seen(evidence: Evidence, events: pl.DataFrame, series: pl.DataFrame) -> float | None:
    times: list[float] = []
    if events.height and events["stamp"].null_count() < events.height:
        lowest = events.filter(pl.col("kind") == "stats_periodic")["stamp"].min()
        times += [float(lowest)] if isinstance(lowest, int | float) else []
    used = series.filter(pl.col("metric") == "vllm:num_requests_running").select("series")
    first = evidence.samples.join(used, on="series", how="semi")["stamp"].min()
    times += [float(first)] if isinstance(first, int | float) else []
    return min(times, default=None)


def _epoch(facts: pl.DataFrame, begin: float, end: float, options: Options) -> Epoch:
    stated: dict[str, Stated] = {}
    every: dict[str, list[Stated]] = {}
    for source, offset, stamp, key, value in facts.select(
        "source", "offset", "stamp", "key", "value"
    ).iter_rows():
        item = Stated(value, Place(source, offset, time=stamp))
        every.setdefault(key, []).append(item)
        stated[key] = item
    flags = _under(stated, "flag.")
    config = _under(stated, "config.")
    memory = _under(stated, "memory.")
    version_said = stated.get("vllm.version")
    version_text = options.vllm_version or (version_said.value if version_said else None)
    version = Version.parse(version_text) if version_text else None
    tp = _whole(_first(flags, config, "tensor_parallel_size")) or 1
    pp = _whole(_first(flags, config, "pipeline_parallel_size")) or 1
    gpu = _gpu(stated, every, options)
    seqs = flags.get("max_num_seqs")
    generation = _generation(stated, version, flags)
    caching = _prefix_caching(stated, flags, config)
    utilization = _first(flags, memory, "gpu_memory_utilization") or memory.get("utilization")
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
    effective = _whole(seqs) if seqs else None
    if effective is None and version is not None:
        effective = default_max_num_seqs(
            (version.major, version.minor, version.patch),
            generation,
            gpu.name,
            gpu.memory_bytes / _GIB if gpu.memory_bytes else None,
            device or "cuda",
            world_size=tp * pp,
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
        pool=_pool(every, stated),
        max_num_seqs=effective,
        max_num_seqs_stated=seqs,
        max_model_len=_whole(
            stated.get("max_model_len") or flags.get("max_model_len") or config.get("max_seq_len")
        ),
        max_num_batched_tokens=_whole(
            flags.get("max_num_batched_tokens") or stated.get("max_num_batched_tokens")
        ),
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=_whole(_first(flags, config, "data_parallel_size")) or 1,
        gpu_memory_utilization=_real(utilization),
        kv_cache_dtype=_text(
            _first(flags, config, "kv_cache_dtype") or stated.get("kv_cache_dtype")
        ),
        dtype=_text(_first(config, flags, "dtype")),
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


def _gpu(stated: Mapping[str, Stated], every: Mapping[str, list[Stated]], options: Options) -> Gpu:
    total = _real(stated.get("memory.total_gib")) or _real(stated.get("gpu.total_gib"))
    mib = _real(stated.get("gpu.total_mib"))
    memory = int(total * _GIB) if total else int(mib * (1 << 20)) if mib else None
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


def _pool(every: Mapping[str, list[Stated]], stated: Mapping[str, Stated]) -> KvPool:
    """Give the pool; ranks may differ, and the smallest one counts."""
    blocks_said = _smallest(
        every, "cache_config.num_gpu_blocks", "pool.num_gpu_blocks", "pool.override_blocks"
    )
    tokens_said = _smallest(every, "pool.tokens", "cache_config.kv_cache_size_tokens")
    size_said = (
        stated.get("cache_config.block_size")
        or stated.get("flag.block_size")
        or stated.get("block_size")
    )
    blocks, size = _whole(blocks_said), _whole(size_said)
    tokens = _whole(tokens_said)
    chosen = tokens_said
    if blocks and size and (tokens is None or "pool.tokens" not in every):
        tokens, chosen = blocks * size, blocks_said
    if size is None and blocks and tokens and tokens % blocks == 0:
        size = tokens // blocks
    if blocks is None and tokens and size:
        blocks = tokens // size
    return KvPool(
        tokens=tokens,
        blocks=blocks,
        block_size=size,
        max_concurrency=_real(stated.get("pool.max_concurrency")),
        source="stated by the server" if chosen else None,
        place=chosen.place if chosen else None,
    )


def _smallest(every: Mapping[str, list[Stated]], *keys: str) -> Stated | None:
    for key in keys:
        values = [item for item in every.get(key, []) if _whole(item)]
        if values:
            return min(values, key=lambda item: _whole(item) or 0)
    return None


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


def _under(stated: Mapping[str, Stated], prefix: str) -> dict[str, Stated]:
    return {
        key[len(prefix) :]: item for key, item in sorted(stated.items()) if key.startswith(prefix)
    }


def _first(left: Mapping[str, Stated], right: Mapping[str, Stated], key: str) -> Stated | None:
    return left.get(key) or right.get(key)


def _real(item: Stated | None) -> float | None:
    try:
        value = float(item.value.replace(",", "")) if item else None
    except ValueError:
        return None
    return value if value is not None and np.isfinite(value) else None


def _whole(item: Stated | None) -> int | None:
    value = _real(item)
    return int(value) if value is not None and value == int(value) else None


def _text(item: Stated | None) -> str | None:
    return item.value if item is not None and item.value not in ("", "None") else None
