"""Tells which series the product uses, so that the others of a huge dump need not be kept."""

import re
from functools import lru_cache

KNOWN = re.compile(
    r"""
      (?:ray_)?vllm[:_]                     # vLLM itself; Ray and OpenTelemetry write underscores
    | process_(?:start_time_seconds|resident_memory_bytes|cpu_seconds_total)\Z
    | python_info\Z
    | (?:up|target_info)\Z
    | http_requests_(?:total|created)\Z
    | http_request_duration_
    | DCGM_
    | nvidia_?(?:smi|gpu)                   # nvidia_smi_*, nvidia_gpu_* exporters
    | nv_(?:gpu|inference|energy)_          # Triton
    | node_(?:gpu|drm|nvidia)
    | node_(?:boot_time_seconds|time_seconds|uname_info)\Z
    """,
    re.VERBOSE,
)
"""Sample names that are kept when `ReadOptions.known_series_only` is set (matched at the start)."""


@lru_cache(65536)
def is_known(metric: str) -> bool:
    """Tell whether the product has a use for a sample name.

    Example:
        >>> is_known("vllm:num_requests_running"), is_known("go_gc_duration_seconds")
        (True, False)
    """
    return KNOWN.match(metric) is not None
