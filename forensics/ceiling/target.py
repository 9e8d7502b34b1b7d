"""What the ceiling is computed for: pool, GPU and model, as stated or as the operator says."""

from dataclasses import dataclass
from pathlib import Path

from forensics.capacity.kv_layout import KvLayout, kv_layout
from forensics.capacity.pool import (
    OVERHEAD_GIB,
    OVERHEAD_RANGE_GIB,
    Pool,
    reckoned_pool,
    stated_pool,
)
from forensics.catalog.defaults import default_gpu_memory_utilization
from forensics.catalog.gpus import GIB, GpuSpec, conflicting, gpus, identify
from forensics.catalog.messages import Message
from forensics.catalog.models import ModelGeometry, geometry, geometry_from_config
from forensics.config import Options
from forensics.diary import Epoch
from forensics.diary.values import real


@dataclass(frozen=True, slots=True)
class Budget:
    """Memory of one GPU, for the formula on bytes; GiB.

    Attributes:
        free_gib: total memory times the utilisation.
        kept_gib: what is not the pool: weights, activations, graphs.
        free_source / kept_source: how each is known.
        kept_error_gib: how far the kept part may be off, either way.
    """

    free_gib: float
    kept_gib: float
    free_source: str
    kept_source: str
    kept_error_gib: float


@dataclass(frozen=True, slots=True)
class Target:
    """The hardware and model of one engine.

    Attributes:
        pool: in tokens; None when neither stated nor reckonable (`pool_refused` says why).
        gpus: candidates, the likeliest first; empty when unknown.
        gpu_text / model_text: as shown to people; None when unknown.
        model: geometry; None when unknown.
        layout: how the cache is stored; None when unknown or not computable.
        current: max_num_seqs in force.
        concurrency: the engine's own (requests, tokens each) figure.
        ranks: tensor-parallel size.
        budget: memory of one GPU; None where GPU or model are unknown.
    """

    pool: Pool | None
    gpus: tuple[GpuSpec, ...]
    gpu_text: str | None
    model: ModelGeometry | None
    model_text: str | None
    layout: KvLayout | None
    current: int | None
    concurrency: tuple[float, int] | None
    pool_refused: Message | None
    notes: tuple[Message, ...]
    ranks: int = 1
    budget: Budget | None = None


def target_of(epoch: Epoch, options: Options) -> Target:
    """Collect what an epoch and the operator say about hardware and model."""
    notes: list[Message] = []
    found = _gpus(epoch, options, notes)
    model, model_text = _model(epoch, options)
    layout: KvLayout | None = None
    refused: Message | None = None
    if model is None:
        refused = Message("ceiling.refused.model", {"model": model_text})
    else:
        made = kv_layout(
            model,
            tensor_parallel=epoch.tensor_parallel_size,
            pipeline_parallel=epoch.pipeline_parallel_size,
            kv_dtype=epoch.kv_cache_dtype,
            dtype=epoch.dtype,
            block_size=epoch.pool.block_size or 16,
            version=_release(epoch),
            draft_layers=_draft_layers(epoch),
        )
        if isinstance(made, Message):
            refused = made
        else:
            layout = made
    pool = stated_pool(
        epoch.pool.tokens,
        epoch.pool.blocks,
        epoch.pool.block_size,
        epoch.pool.source or "stated by the server",
    )
    if pool is None and layout is not None and model is not None:
        pool, refused = _reckon(epoch, found, model, layout)
    return Target(
        pool=pool,
        gpus=found,
        gpu_text=_gpu_text(epoch, found),
        model=model,
        model_text=model_text,
        layout=layout,
        current=epoch.max_num_seqs,
        concurrency=(
            (epoch.pool.max_concurrency, epoch.max_model_len)
            if epoch.pool.max_concurrency and epoch.max_model_len
            else None
        ),
        pool_refused=None if pool is not None else refused,
        notes=tuple(notes),
        ranks=epoch.tensor_parallel_size,
        budget=_budget(epoch, found, model) if model is not None else None,
    )


def _budget(epoch: Epoch, found: tuple[GpuSpec, ...], model: ModelGeometry) -> Budget | None:
    """Take stock of one GPU: what the server stated first, the table and usual sizes else."""
    memory = _memory_gib(epoch, found)
    if memory is None:
        return None
    free = memory * _utilization(epoch)
    stated = {name: real(item) for name, item in epoch.memory.items()}
    pool = stated.get("kv_gib")
    if pool is not None and pool < free:
        return Budget(free, free - pool, "total memory x utilisation", "all but the pool", 0.0)
    weights = stated.get("weights_gib")
    activation = stated.get("activation_gib")
    how = "stated by the server" if weights is not None and activation is not None else "reckoned"
    ranks = epoch.tensor_parallel_size * epoch.pipeline_parallel_size
    kept = weights if weights is not None else model.weight_bytes / GIB / ranks
    kept += activation if activation is not None else OVERHEAD_GIB
    error = 0.0 if activation is not None else OVERHEAD_RANGE_GIB[1] - OVERHEAD_GIB
    return Budget(free, kept, "total memory x utilisation", how, error)


def _draft_layers(epoch: Epoch) -> int:
    """Return the KV layers of a speculative draft: one for EAGLE and MTP heads, else unknown (0).

    A draft model of its own has its own geometry; where the pool is stated, it is in there.
    """
    text = (epoch.flag("speculative_config") or "").lower()
    return 1 if "eagle" in text or "mtp" in text else 0


def _release(epoch: Epoch) -> tuple[int, int, int] | None:
    version = epoch.version
    return None if version is None else (version.major, version.minor, version.patch)


def _gpus(epoch: Epoch, options: Options, notes: list[Message]) -> tuple[GpuSpec, ...]:
    if options.gpu:
        told = identify(options.gpu)
        memory = epoch.gpu.memory_bytes
        if told and memory and conflicting(options.gpu, memory / GIB):
            notes.append(
                Message("ceiling.note.gpu_impossible", {"gpu": options.gpu, "memory": memory / GIB})
            )
        if told:
            return told
        notes.append(Message("ceiling.note.gpu_not_in_table", {"gpu": options.gpu}))
    table = gpus()
    names = (epoch.gpu.name,) if epoch.gpu.name else epoch.gpu.candidates
    found = tuple(table[name] for name in names if name in table)
    if not found and epoch.gpu.name:
        found = identify(epoch.gpu.name, epoch.gpu.memory_bytes)
    if not found:
        notes.append(Message("ceiling.note.gpu_unknown", {}))
    elif len(found) > 1:
        listed = ", ".join(spec.name for spec in found)
        notes.append(Message("ceiling.note.gpu_candidates", {"gpus": listed}))
    return found


def _gpu_text(epoch: Epoch, found: tuple[GpuSpec, ...]) -> str | None:
    if len(found) == 1:
        return found[0].name
    return " or ".join(spec.name for spec in found) or epoch.gpu.name


def _model(epoch: Epoch, options: Options) -> tuple[ModelGeometry | None, str | None]:
    if options.model:
        if options.model.endswith(".json") or _is_folder_of_config(options.model):
            found = geometry_from_config(options.model)
            return found, found.name
        return geometry(options.model), options.model
    if epoch.model is None:
        return None, None
    return geometry(epoch.model.value), epoch.model.value


def _is_folder_of_config(name: str) -> bool:
    try:
        return Path(name, "config.json").is_file()
    except (OSError, ValueError):
        return False  # a name that no path can have is the name of a model


def _reckon(
    epoch: Epoch, found: tuple[GpuSpec, ...], model: ModelGeometry, layout: KvLayout
) -> tuple[Pool | None, Message | None]:
    memory = _memory_gib(epoch, found)
    if memory is None:
        return None, Message("ceiling.refused.gpu", {})
    pool = reckoned_pool(
        memory,
        _utilization(epoch),
        model.weight_bytes,
        layout,
        tensor_parallel=epoch.tensor_parallel_size,
        pipeline_parallel=epoch.pipeline_parallel_size,
    )
    if pool is None:
        return None, Message(
            "ceiling.refused.no_room",
            {"model": model.name, "weights": model.weight_bytes / GIB, "memory": memory},
        )
    return pool, None


def _memory_gib(epoch: Epoch, found: tuple[GpuSpec, ...]) -> float | None:
    if epoch.gpu.memory_bytes:
        return epoch.gpu.memory_bytes / GIB
    return min((spec.cuda_gib for spec in found), default=None)


def _utilization(epoch: Epoch) -> float:
    if epoch.gpu_memory_utilization is not None:
        return epoch.gpu_memory_utilization
    release = _release(epoch)
    return default_gpu_memory_utilization(release) if release else 0.9
