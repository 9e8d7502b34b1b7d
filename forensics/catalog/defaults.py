"""What a vLLM release runs with when a flag is absent: batch limits, utilization, caching.

From `EngineArgs` of 69 releases (``config.py``, ``engine/arg_utils.py``, ``platforms/cpu.py``).
Where the default depends on the GPU and neither its name nor its memory is known, the answer is
None: an assumed default would make a wrong limit look like a measured one.
"""

from dataclasses import dataclass

Release = tuple[int, int, int]

LARGE_GIB = 70.0
"""`DEFAULT_MAX_NUM_SEQS` splits at 70 GiB of total memory (0.8.5+)."""
HUGE_GIB = 160.0
"""… and from 0.28.0 at 160 GiB as well (B200, MI300X class)."""


@dataclass(frozen=True, slots=True)
class BatchDefaults:
    """Defaults of one release on one device; None where they depend on something unknown."""

    max_num_seqs: int | None
    max_num_batched_tokens: int | None


def default_max_num_seqs(
    version: Release,
    generation: str | None,
    gpu_name: str | None = None,
    memory_gib: float | None = None,
    device: str = "cuda",
    *,
    world_size: int = 1,
    performance_mode: str | None = None,
    max_num_batched_tokens: int | None = None,
) -> int | None:
    """Return the effective `max_num_seqs` of an API server that was not told one.

    Args:
        version: (major, minor, patch).
        generation: "V0" or "V1"; None takes the release's default engine.
        gpu_name: of the device; None when unknown.
        memory_gib: total memory of the device; None when unknown.
        device: "cuda" (ROCm included), "cpu" or "tpu".
        world_size: tensor x pipeline parallel size; matters on CPU only.
        performance_mode: "throughput" doubles the default (0.17.0+).
        max_num_batched_tokens: the step budget in force; caps the default from 0.10.1.
    """
    value = batch_defaults(version, generation, gpu_name, memory_gib, device, world_size)
    seqs = value.max_num_seqs
    if seqs is None:
        return None
    if performance_mode == "throughput" and version >= (0, 17, 0):
        seqs *= 2
    if max_num_batched_tokens is not None and version >= (0, 10, 1):
        seqs = min(seqs, max_num_batched_tokens)
    return seqs


def batch_defaults(
    version: Release,
    generation: str | None,
    gpu_name: str | None = None,
    memory_gib: float | None = None,
    device: str = "cuda",
    world_size: int = 1,
) -> BatchDefaults:
    """Return both batch defaults of an OpenAI API server (other entry points differ in tokens)."""
    engine = generation or ("V1" if version >= (0, 8, 0) else "V0")
    if device == "cpu":
        return _cpu(version, world_size, engine)
    if engine == "V0":
        return BatchDefaults(256, None)
    if device == "tpu":
        return BatchDefaults(256, None)
    if version < (0, 7, 0):
        return BatchDefaults(256, 2048)
    name = (gpu_name or "").lower()
    if version < (0, 8, 5):
        if gpu_name is None:
            return BatchDefaults(1024 if version < (0, 8, 4) else None, None)
        if "h100" in name or "h200" in name:
            return BatchDefaults(1024, 8192)
        return BatchDefaults(1024 if version < (0, 8, 4) else 256, 2048)
    if memory_gib is None:
        # From 0.9.0 an A100 has the small default whatever its memory.
        small = "a100" in name and version >= (0, 9, 0)
        return BatchDefaults(256, 2048) if small else BatchDefaults(None, None)
    if version >= (0, 28, 0) and memory_gib >= HUGE_GIB:
        return BatchDefaults(1024, 16384)
    if memory_gib < LARGE_GIB:
        return BatchDefaults(256, 2048)
    if version < (0, 9, 0):
        return BatchDefaults(1024, 8192)
    if gpu_name is None:
        return BatchDefaults(None, None)
    if "a100" in name or (version >= (0, 33, 0) and "gb10" in name):
        return BatchDefaults(256, 2048)
    return BatchDefaults(1024, 8192)


def default_gpu_memory_utilization(version: Release) -> float:
    """Return the share of GPU memory a release takes when not told: 0.92 from 0.20.0."""
    return 0.92 if version >= (0, 20, 0) else 0.90


def default_prefix_caching(version: Release, generation: str | None, hybrid: bool = False) -> bool:
    """Tell whether prefix caching is on when no flag says so.

    Args:
        version: (major, minor, patch).
        generation: "V0" (off), "V1" (on), or None for the release's default engine.
        hybrid: the model has Mamba or linear-attention layers: off up to 0.27.0.
    """
    engine = generation or ("V1" if version >= (0, 8, 0) else "V0")
    return engine == "V1" and not (hybrid and version < (0, 28, 0))


def _cpu(version: Release, world_size: int, engine: str) -> BatchDefaults:
    if version >= (0, 10, 0):
        return BatchDefaults(128 * world_size, 2048 * world_size)
    if version >= (0, 9, 2):
        return BatchDefaults(32, 2048)
    # Older releases had no CPU special case: the text of the GPU defaults applied.
    return BatchDefaults(256, None) if engine == "V0" else BatchDefaults(None, None)
