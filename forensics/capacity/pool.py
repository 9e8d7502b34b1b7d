"""The size of the KV pool: from the server's own figures, or reckoned from GPU and model.

``pool = total memory x gpu_memory_utilization - weights - activations - graphs``, per GPU; blocks
are ``floor(pool / bytes per block)``, and the smallest rank counts. Total memory is what the driver
reports. What the server states has no error; what is reckoned has at least 4 %, and more where
activations are a large part of a small pool (docs/ceiling.md).
"""

from dataclasses import dataclass
from math import floor

from forensics.capacity.kv_layout import KvLayout
from forensics.catalog.gpus import GIB

OVERHEAD_GIB = 1.6
"""Activations, graphs and non-torch memory of a 7-8B model: 1-2.5 GiB in public start-up logs."""
OVERHEAD_RANGE_GIB = (1.0, 2.5)
MODEL_ERROR = 0.04
"""Relative error of a reckoned pool, checked for 9 cards in the worked examples of the tests."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A KV pool in tokens, with its interval.

    Attributes:
        tokens / low / high: what one engine holds.
        blocks / block_size: None when only tokens are known.
        stated: whether the server said it (then low = high = tokens).
        source: where it is from, for a reader.
        steps: the arithmetic; empty for a stated pool.
    """

    tokens: int
    low: int
    high: int
    blocks: int | None
    block_size: int | None
    stated: bool
    source: str
    steps: tuple[str, ...] = ()


def stated_pool(
    tokens: int | None, blocks: int | None, block_size: int | None, source: str
) -> Pool | None:
    """Take the pool as the server stated it; None when it said neither tokens nor blocks."""
    if blocks and block_size:
        # One null block is reserved for good (0.8.3+), which the logged tokens ignore.
        size = tokens or blocks * block_size
        return Pool(size, size, size, blocks, block_size, True, source)
    if not tokens:
        return None
    count = tokens // block_size if block_size else None
    return Pool(tokens, tokens, tokens, count, block_size, True, source)


def reckoned_pool(
    memory_gib: float,
    utilization: float,
    weight_bytes: float,
    layout: KvLayout,
    *,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    overhead_gib: float | None = None,
    context_parallel: int = 1,
) -> Pool | None:
    """Reckon the pool of a server that is not there; None when the weights leave no room.

    Args:
        memory_gib: total memory of one GPU as the driver reports it (the smallest one).
        utilization: `--gpu-memory-utilization`.
        weight_bytes: weights over all GPUs.
        layout: how one GPU stores the cache.
        tensor_parallel: ranks that share weights and KV heads.
        pipeline_parallel: stages that share the layers.
        overhead_gib: activations and graphs when known; the usual 1.6 (1.0-2.5) otherwise.
        context_parallel: `--decode-context-parallel-size`: ranks that share the tokens.
    """
    ranks = tensor_parallel * pipeline_parallel
    weights = weight_bytes / ranks / GIB
    overhead = OVERHEAD_GIB if overhead_gib is None else overhead_gib
    extremes = OVERHEAD_RANGE_GIB if overhead_gib is None else (overhead_gib, overhead_gib)

    def blocks_with(taken: float) -> int:
        free = (memory_gib * utilization - weights - taken) * GIB
        return max(0, floor(free / layout.bytes_per_block))

    blocks = blocks_with(overhead)
    if blocks < 2:
        return None
    per_block = layout.block_size * context_parallel
    groups = layout.full_groups + layout.window_groups
    # Layers in several groups: tokens are those of a short request, as vLLM prints them.
    tokens = blocks * per_block // groups
    low = min(blocks * (1 - MODEL_ERROR), blocks_with(extremes[1])) * per_block / groups
    high = max(blocks * (1 + MODEL_ERROR), blocks_with(extremes[0])) * per_block / groups
    free = memory_gib * utilization - weights - overhead
    steps = (
        f"{memory_gib:g} GiB x {utilization:g} - {weights:.2f} GiB weights"
        f" - {overhead:g} GiB activations and graphs = {free:.2f} GiB",
        f"{free:.2f} GiB / {layout.bytes_per_block:,.0f} B per block of {layout.block_size}"
        f" = {blocks:,} blocks = {tokens:,} tokens",
    )
    return Pool(tokens, int(low), int(high), blocks, layout.block_size, False, "reckoned", steps)
