"""Device memory and KV pool lines: what the weights, activations and graphs took, what was left.

All figures are GiB (2**30 bytes) in every release, also where the text says GB (up to 0.8.2).
`GPU KV cache size: N tokens` changed its meaning for hybrid models in 0.21.0; kept as printed.
"""

from collections.abc import Iterator

from parsers.vllm_log.interface import Fact, Fields, LogPattern, pattern, plain

_PROFILE_FACTS = {
    "total_gib": "memory.total_gib",
    "utilization": "memory.utilization",
    "budget_gib": "memory.budget_gib",
    "weights_gib": "memory.weights_gib",
    "activation_gib": "memory.activation_gib",
    "non_torch_gib": "memory.non_torch_gib",
    "cudagraph_gib": "memory.cudagraph_gib",
    "consumed_gib": "memory.consumed_gib",
    "free_gib": "memory.free_gib",
    "kv_gib": "memory.kv_gib",
}
_POOL_FACTS = {
    "num_gpu_blocks": "pool.num_gpu_blocks",
    "num_cpu_blocks": "pool.num_cpu_blocks",
    "num_tokens": "pool.tokens",
    "max_concurrency": "pool.max_concurrency",
    "max_model_len": "pool.max_concurrency_len",
}
_BREAKDOWN_END = (
    "Replace gpu_memory_utilization config with `--kv-cache-memory={fit_bytes:d}`"
    "[[ ({fit_gib:f} GiB)]] to fit into requested memory, or `--kv-cache-memory={full_bytes:d}`"
    "[[ ({full_gib:f} GiB)]] to fully utilize gpu memory. Current kv cache memory in use is "
    "{in_use:s}."
)
_BREAKDOWN_START = (
    "Free memory on device ({free_gib:f}/{total_gib:f} GiB) on startup. Desired GPU memory "
    "utilization is ({utilization:f}, {budget_gib:f} GiB). Actual usage is "
)


def _kv_in_use(_message: str, fields: Fields) -> Iterator[Fact]:
    # Bytes as a bare integer up to 0.25.0, "55.6 GiB" from 0.26.0 on.
    text = plain(fields.get("in_use", ""))
    number = text.removesuffix(" bytes").removesuffix(" GiB")
    if text.endswith("GiB"):
        yield Fact("memory.kv_gib", number)
    elif number.isdecimal():
        yield Fact("memory.kv_gib", f"{int(number) / 2**30:.4f}")


def _debug_facts(_message: str, fields: Fields) -> Iterator[Fact]:
    if "non-torch" in plain(fields.get("mid_label", "")):
        yield Fact("memory.non_torch_gib", plain(fields.get("mid_gib", "")))


PATTERNS: tuple[LogPattern, ...] = (
    pattern(
        "weights_memory",
        "Loading model weights took {weights_gib:f} GB",
        "Loading model weights took {weights_gib:f} GiB",
        "Model loading took {weights_gib:f} GB and {seconds:f} seconds",
        "Model loading took {weights_gib:f} GiB[[ memory]] and {seconds:f} seconds",
        since="0.4.0",
        until="0.33.0",
        facts={"weights_gib": "memory.weights_gib"},
    ),
    pattern(
        "weights_time",
        "Loading weights took {seconds:f} seconds",
        since="0.8.0",
        until="0.33.0",
    ),
    pattern(
        "memory_profile_results",
        "Memory profiling results: total_gpu_memory={total_gib:f}GiB initial_memory_usage="
        "{initial_usage_gib:f}GiB peak_torch_memory={peak_torch_gib:f}GiB "
        "memory_usage_post_profile={post_profile_gib:f}Gi[[B]][[b]] non_torch_memory="
        "{non_torch_gib:f}GiB kv_cache_size={kv_gib:f}GiB gpu_memory_utilization={utilization:f}",
        kind="memory_profile",
        since="0.6.4",
        until="0.6.4",
        facts=_PROFILE_FACTS,
    ),
    pattern(
        "memory_profile_start",
        "Memory profiling takes {profile_seconds:f} seconds",
        kind="memory_profile",
        since="0.6.5",
        until="0.10.2",
    ),
    pattern(
        "memory_profile_budget",
        "the current vLLM instance can use total_gpu_memory ({total_gib:f}GiB) x "
        "gpu_memory_utilization ({utilization:f}) = {budget_gib:f}GiB",
        kind="memory_profile",
        since="0.6.5",
        until="0.10.2",
        facts=_PROFILE_FACTS,
    ),
    pattern(
        "memory_profile_parts",
        "model weights take {weights_gib:f}GiB; non_torch_memory takes {non_torch_gib:f}GiB; "
        "PyTorch activation peak memory takes {activation_gib:f}GiB; the rest of the memory "
        "reserved for KV Cache is {kv_gib:f}GiB.",
        kind="memory_profile",
        since="0.6.5",
        until="0.10.2",
        facts=_PROFILE_FACTS,
    ),
    pattern(
        "memory_breakdown",
        _BREAKDOWN_START + "{weights_gib:f} GiB for weight, {activation_gib:f} GiB for peak "
        "activation, {non_torch_gib:f} GiB for non-torch memory, and {cudagraph_gib:f} GiB for "
        "CUDAGraph memory. " + _BREAKDOWN_END,
        _BREAKDOWN_START + "{consumed_gib:f} GiB for consumed memory (weights + non-torch), "
        "{activation_gib:f} GiB for peak activation, and {cudagraph_gib:f} GiB for CUDAGraph "
        "memory. " + _BREAKDOWN_END,
        since="0.10.2",
        until="0.33.0",
        facts=_PROFILE_FACTS,
        make_facts=_kv_in_use,
    ),
    pattern(
        "kv_memory_fixed",
        "Initial free memory {free_gib:f} GiB, reserved {kv_gib:f}[[ ]]GiB memory for KV Cache as "
        "specified by kv_cache_memory_bytes config and skipped memory profiling. {:s}",
        since="0.10.2",
        until="0.33.0",
        facts={"free_gib": "memory.free_gib", "kv_gib": "memory.kv_gib"},
    ),
    pattern(
        "memory_profile_debug",
        "Memory profiling takes {profile_seconds:f} seconds. Total non KV cache memory: "
        "{non_kv_gib:f}GiB; torch peak memory increase: {activation_gib:f}GiB; {mid_label:s}: "
        "{mid_gib:f}GiB; weights memory: {weights_gib:f}GiB.",
        "Initial free memory: {free_gib:f} GiB, free memory: {free_now_gib:f} GiB, requested GPU "
        "memory: {budget_gib:f} GiB",
        "Initial free memory: {free_gib:f} GiB; Requested memory: {utilization:f} (util), "
        "{budget_gib:f} GiB",
        "Free memory after profiling: {free_after_gib:f} GiB (total), {within_gib:f} GiB (within "
        "requested)",
        since="0.9.1",
        until="0.33.0",
        facts={key: fact for key, fact in _PROFILE_FACTS.items() if key != "kv_gib"},
        make_facts=_debug_facts,
    ),
    pattern(
        "kv_available_memory",
        "Available KV cache memory: {kv_gib:f} GiB",
        "Explicitly set ({kv_gib:f}/{node_gib:f}) GiB for KV cache on node {node:w}.",
        since="0.9.1",
        until="0.33.0",
        facts={"kv_gib": "memory.kv_gib"},
    ),
    pattern(
        "cudagraph_memory",
        "Graph capturing finished in {seconds:f} secs[[, took {cudagraph_gib:f} GiB]][[.]]",
        "Estimated CUDA graph memory: {estimated_gib:f} GiB total",
        "CUDA graph pool memory: {cudagraph_gib:f} GiB (actual), {estimated_gib:f} GiB "
        "(estimated), difference: {:s}",
        "Encoder graph capturing finished in {seconds:f} secs, took {encoder_gib:f} GiB "
        "({graphs:d} graphs)",
        "CUDA graphs can take additional 1~3 GiB memory per GPU. {:s}",
        since="0.2.6",
        until="0.33.0",
        facts={"cudagraph_gib": "memory.cudagraph_gib"},
    ),
    pattern(
        "cudagraph_policy",
        "CUDA graph memory profiling is enabled ({:s}) The current --gpu-memory-utilization="
        "{current_util:f} is equivalent to --gpu-memory-utilization={equivalent_util:f} without "
        "CUDA graph memory profiling. {:s}",
        "CUDA graph memory profiling is enabled ({:s}). {:s}The current --gpu-memory-utilization="
        "{current_util:f} is equivalent to --gpu-memory-utilization={equivalent_util:f} without "
        "CUDA graph memory profiling. {:s}",
        "CUDA graph memory profiling is disabled {:s}",
        "In v0.19, CUDA graph memory profiling will be enabled by default {:s}",
        kind="cudagraph_memory",
        since="0.18.0",
        until="0.33.0",
    ),
    pattern(
        "kv_blocks",
        "# CPU blocks: {num_gpu_blocks:d}",
        "# {device:w} blocks: {num_gpu_blocks:d}[[, # CPU blocks: {num_cpu_blocks:d}]]",
        since="0.2.0",
        until="0.10.2",
        facts=_POOL_FACTS,
    ),
    pattern(
        "kv_size_tokens",
        "{device:w}[[ + host]] KV cache size: {num_tokens:d} tokens[[, Maximum concurrency for "
        "{max_model_len:d} tokens per request: {max_concurrency:f}x]]",
        since="0.8.0",
        until="0.33.0",
        facts=_POOL_FACTS,
    ),
    pattern(
        "kv_max_concurrency",
        "Maximum concurrency for {max_model_len:d} tokens per request: {max_concurrency:f}x",
        since="0.6.3",
        until="0.27.0",
        facts=_POOL_FACTS,
    ),
    pattern(
        "kv_override",
        "Overriding num_gpu_blocks={num_gpu_blocks:d} with num_gpu_blocks_override="
        "{override_blocks:d}",
        "Overriding num_gpu_blocks='{num_gpu_blocks:d}' with num_gpu_blocks_override="
        "'{override_blocks:d}'",
        "Replacing profiled num_gpu_blocks='{num_gpu_blocks:d}' with forced_num_gpu_blocks="
        "'{override_blocks:d}'",
        since="0.4.0",
        until="0.33.0",
        facts={"override_blocks": "pool.override_blocks"},
    ),
    pattern(
        "cache_config_info",
        "vllm cache_config_info with initialization after num_gpu_blocks is: {num_gpu_blocks:d}",
        since="0.9.0",
        until="0.33.0",
        facts={"num_gpu_blocks": "pool.num_gpu_blocks"},
    ),
    pattern(
        "kv_autofit",
        "Auto-fit max_model_len: attention-free model, using derived max_model_len={original:d}",
        "Auto-fit max_model_len: full model context length {original:d} fits in available KV "
        "cache memory ({kv_gib:f}[[ GiB]])",
        "Auto-fit max_model_len: full model context length {original:d} fits in available {:s}",
        "Auto-fit max_model_len: reduced from {original:d} to {max_model_len:d} to fit in "
        "available {:s} ({kv_gib:f}[[ GiB]][[ available for KV cache]])",
        since="0.14.0",
        until="0.33.0",
        facts={"max_model_len": "max_model_len"},
    ),
    pattern(
        "kv_hybrid",
        "Add {padding_layers:d} padding layers, may waste at most {waste_pct:f}% KV cache memory",
        "Hybrid KV cache manager is disabled for this hybrid model, {:s}",
        "There is a latency regression when using chunked local attention with the hybrid KV cache"
        " manager. {:s}",
        "Turning off hybrid kv cache manager because {reason:s}",
        "KV cache page sizes cannot be unified; {:s}",
        "kv cache group sizes {group_sizes:s}",
        since="0.9.1",
        until="0.33.0",
    ),
    pattern(
        "kv_cp_multiplier",
        "Multiplying the GPU KV cache size by the dcp_world_size {multiplier:d}.",
        "Multiplying the GPU KV cache size by the cp_world_size {multiplier:d} (pcp_world_size "
        "{pcp_size:d} * dcp_world_size {dcp_size:d}).",
        since="0.10.2",
        until="0.20.0",
    ),
    pattern(
        "kv_layout_or_block_size",
        "Forcing kv cache block size to {block_size:d} for {backend:s} backend.",
        "[{backend:w}]: Setting kv cache block size to {block_size:d}.",
        "Setting kv cache block size to {block_size:d} for {backend:s} backend[[(s)]].",
        "Setting attention block size to {block_size:d} tokens {:s}",
        since="0.8.0",
        until="0.33.0",
        facts={"block_size": "block_size"},
    ),
    pattern(
        "kv_dtype",
        "Using {kv_cache_dtype:w} data type to store kv cache. {:s}",
        since="0.3.0",
        until="0.33.0",
        facts={"kv_cache_dtype": "kv_cache_dtype"},
    ),
    pattern(
        "swap_space_warning",
        "Possibly too large swap space. {detail:s}",
        since="0.2.0",
        until="0.17.0",
    ),
)
