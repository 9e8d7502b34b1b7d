"""Exposed names → canonical signals: which series give a signal, by vLLM's renames.

Where a metric was renamed, the new name is asked first and the deprecated twin only when the new
one is absent: twins are never added together. Names with ``vllm_`` instead of ``vllm:`` (as
rewritten by OpenTelemetry and cloud monitors) count as the same. Source: the metrics catalogue and
"Renames and removals" of the verified metrics reference (releases 0.2.3 to 0.33.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Exposed:
    """One exposed series family that can give a signal.

    Attributes:
        metric: exposed sample name.
        labels: label values that must match, by label name.
        excluded: label values that must not match.
        quality: what is inferred when this one is used ("" when it is the signal itself).
    """

    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    quality: str = ""


def _by_source(source: str) -> Exposed:
    return Exposed("vllm:prompt_tokens_by_source_total", {"source": source})


GAUGES: dict[str, tuple[Exposed, ...]] = {
    "running": (Exposed("vllm:num_requests_running"),),
    "waiting": (Exposed("vllm:num_requests_waiting"),),
    "waiting_capacity": (Exposed("vllm:num_requests_waiting_by_reason", {"reason": "capacity"}),),
    "waiting_deferred": (Exposed("vllm:num_requests_waiting_by_reason", {"reason": "deferred"}),),
    "swapped": (Exposed("vllm:num_requests_swapped"),),
    "kv_usage": (Exposed("vllm:kv_cache_usage_perc"), Exposed("vllm:gpu_cache_usage_perc")),
}

COUNTERS: dict[str, tuple[Exposed, ...]] = {
    "queries": (
        Exposed("vllm:prefix_cache_queries_total"),
        Exposed("vllm:gpu_prefix_cache_queries_total"),
    ),
    "hits": (
        Exposed("vllm:prefix_cache_hits_total"),
        Exposed("vllm:gpu_prefix_cache_hits_total"),
    ),
    "prompt_tokens": (Exposed("vllm:prompt_tokens_total"),),
    "cached_tokens": (_by_source("local_cache_hit"),),
    "computed_tokens": (_by_source("local_compute"),),
    "external_tokens": (_by_source("external_kv_transfer"),),
    "generation_tokens": (Exposed("vllm:generation_tokens_total"),),
    "preemptions": (
        Exposed("vllm:num_preemptions_total"),
        # 0.30+; its le="1" bucket holds 0 and 1, so the sum counts (metrics reference 3.5).
        Exposed("vllm:request_num_preemptions_sum", quality="counted when the request ends"),
    ),
    "finished": (Exposed("vllm:request_success_total", excluded={"finished_reason": "abort"}),),
    "aborted": (Exposed("vllm:request_success_total", {"finished_reason": "abort"}),),
    "rejected": (Exposed("vllm:admission_rejections_total"),),
    "first_tokens": (Exposed("vllm:time_to_first_token_seconds_count"),),
    "ended": (Exposed("vllm:e2e_request_latency_seconds_count"),),
}

# Means over the requests (or blocks) observed in an interval: base names of histograms.
MEANS: dict[str, tuple[str, ...]] = {
    "ttft_s": ("vllm:time_to_first_token_seconds",),
    "e2e_s": ("vllm:e2e_request_latency_seconds",),
    "queue_s": ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
    "prefill_s": ("vllm:request_prefill_time_seconds",),
    "decode_s": ("vllm:request_decode_time_seconds",),
    "itl_s": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "prompt_len": ("vllm:request_prompt_tokens",),
    "output_len": ("vllm:request_generation_tokens",),
    "computed_len": ("vllm:request_prefill_kv_computed_tokens",),
    "block_idle_s": ("vllm:kv_block_idle_before_evict_seconds",),
    "block_reuse_s": ("vllm:kv_block_reuse_gap_seconds",),
    "block_life_s": ("vllm:kv_block_lifetime_seconds",),
}

# Histograms handed on whole, by short name.
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "ttft_s": MEANS["ttft_s"],
    "e2e_s": MEANS["e2e_s"],
    "queue_s": MEANS["queue_s"],
    "prefill_s": MEANS["prefill_s"],
    "decode_s": MEANS["decode_s"],
    "itl_s": MEANS["itl_s"],
    "prompt_len": MEANS["prompt_len"],
    "output_len": MEANS["output_len"],
    "computed_len": MEANS["computed_len"],
    "block_idle_s": MEANS["block_idle_s"],
    "block_reuse_s": MEANS["block_reuse_s"],
    "block_life_s": MEANS["block_life_s"],
    "preemptions": ("vllm:request_num_preemptions",),
}

# V0's gauge: a lifetime average, from which an interval rate is recovered (see rates.py).
LIFETIME_HIT_RATE = "vllm:gpu_prefix_cache_hit_rate"


def canonical_name(metric: str) -> str:
    """Undo the rewriting of ``vllm:`` to ``vllm_``."""
    return "vllm:" + metric[5:] if metric.startswith("vllm_") else metric
