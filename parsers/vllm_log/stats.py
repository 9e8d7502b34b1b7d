"""Periodic statistics lines of both engines: throughput, queue lengths, usage, hit rates.

Fields are found by name, because releases insert segments (``Deferred: N reqs`` since 0.20.0,
``KV fetch: ...`` since 0.32.0) and forks insert their own. Names are the same for all releases;
percentages stay as printed. What they mean in which release is not decided here.

V0 (0.2.0 to 0.10.2) prints Running, Swapped, Pending and two usages; V1 (0.7.0 on) Running, Waiting
and one usage, whose first word is the device since 0.30.0.
"""

import re

from parsers.vllm_log.interface import (
    Fields,
    LogPattern,
    Value,
    decimal,
    integer,
    pattern,
)

_SEGMENT = re.compile(
    r"(?P<label>[A-Z][A-Za-z ]*?): (?P<value>-?\d+(?:\.\d+)?)"
    r"(?:%| tokens/s| reqs)?(?=[,. ]|$)"
)
_FETCH = re.compile(r"KV fetch: (\d+) waiting to start, (\d+) in progress, (\d+) completed waiting")
_LABELS = {
    "Avg prompt throughput": "prompt_tps",
    "Avg generation throughput": "generation_tps",
    "Running": "running",
    "Waiting": "waiting",
    "Pending": "pending",
    "Swapped": "swapped",
    "Deferred": "deferred",
    "Preemptions": "preemptions",
    "Prefix cache hit rate": "prefix_hit_rate_pct",
    "Corrupted": "corrupted",
    "External prefix cache hit rate": "external_hit_rate_pct",
    "MM cache hit rate": "mm_hit_rate_pct",
}
_USAGE = " KV cache usage"
_COUNTS = frozenset(
    {"running", "waiting", "pending", "swapped", "deferred", "preemptions", "corrupted"}
)


def _named_fields(message: str) -> Fields | None:
    found: Fields = {}
    usages: list[tuple[str, float]] = []
    for label, text in _SEGMENT.findall(message):
        name = _LABELS.get(label)
        if name is not None:
            value: Value | None = integer(text) if name in _COUNTS else float(text)
            if value is not None:
                found.setdefault(name, value)
        elif label.endswith(_USAGE):
            usages.append((label[: -len(_USAGE)].split()[-1], float(text)))
    if not found:
        return None
    if len(usages) > 1 or "swapped" in found or "pending" in found:
        found.update({f"{device.lower()}_kv_usage_pct": used for device, used in usages})
    elif usages:
        found["device"], found["kv_usage_pct"] = usages[0]
    fetch = _FETCH.search(message)
    if fetch is not None:
        found["kv_fetch_waiting"] = int(fetch[1])
        found["kv_fetch_in_progress"] = int(fetch[2])
        found["kv_fetch_done"] = int(fetch[3])
    return found


def _fragment(message: str) -> Fields | None:
    """Take what is left of a stats line that lost its head."""
    if " reqs, " not in message or " KV cache usage: " not in message or len(message) > 1000:
        return None
    found = _named_fields(message)
    return found if found is not None and len(found) >= 4 else None


def _rates(text: Value) -> list[float]:
    values = (decimal(part) for part in str(text).split(","))
    return [value for value in values if value is not None]


def _spec_fields(message: str) -> Fields | None:
    for shape in _SPEC.shapes:
        found = shape.fields(message)
        if found is not None:
            if "per_position_rates" in found:
                found["per_position_rates"] = _rates(found["per_position_rates"])
            return found
    return None


_SPEC = pattern(
    "spec_decode",
    "SpecDecoding metrics: Draft acceptance rate: {draft_acceptance_rate_pct:f}%, "
    "[[Mean acceptance length: {mean_acceptance_length:f}, ]]"
    "Accepted: {num_accepted_tokens:d} tokens, Drafted: {num_draft_tokens:d} tokens"
    "[[, Per-position acceptance rate: {per_position_rates:s}]]",
    "SpecDecoding metrics: Mean acceptance length: {mean_acceptance_length:f}, "
    "Accepted throughput: {accepted_tps:f} tokens/s, Drafted throughput: {draft_tps:f} tokens/s, "
    "Accepted: {num_accepted_tokens:d} tokens, Drafted: {num_draft_tokens:d} tokens, "
    "Per-position acceptance rate: {per_position_rates:s}, "
    "Avg Draft acceptance rate: {draft_acceptance_rate_pct:f}%",
)

PATTERNS = (
    LogPattern(
        name="stats_periodic",
        kind="stats_periodic",
        make_fields=_named_fields,
        gates=("Avg prompt throughput: ", "Running: "),
        since="0.2.0",
        until="0.33.0",
    ),
    LogPattern(
        name="stats_fragment",
        kind="stats_periodic",
        make_fields=_fragment,
        gates=("",),
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "prefix_hit_rate",
        "Prefix cache hit rate: GPU: {gpu_hit_rate_pct:f}%, CPU: {cpu_hit_rate_pct:f}%",
        since="0.5.5",
        until="0.10.2",
    ),
    LogPattern(
        name="spec_decode_v1",
        kind="spec_decode",
        make_fields=_spec_fields,
        gates=("SpecDecoding metrics: ",),
        since="0.8.3",
        until="0.33.0",
    ),
    pattern(
        "spec_decode_v0",
        "Speculative metrics: Draft acceptance rate: {acceptance_rate:f}, System efficiency: "
        "{system_efficiency:f}, Number of speculative tokens: {num_spec_tokens:d}, Number of "
        "accepted tokens: {accepted:d}, Number of draft tokens[[ tokens]]: {draft:d}, Number of "
        "emitted tokens[[ tokens]]: {emitted:d}.",
        kind="spec_decode",
        since="0.4.1",
        until="0.9.2",
    ),
    pattern(
        "diffusion_decode",
        "DiffusionDecoding metrics: Committed token throughput: {committed_tps:f} tokens/s, "
        "Mean denoising steps per canvas: {mean_steps_per_canvas:f}, Mean tokens committed per "
        "denoising step: {mean_committed_per_step:f}, Committed: {num_committed_tokens:d} tokens, "
        "Denoising steps: {num_denoising_steps:d}, Canvas positions evaluated: "
        "{num_canvas_tokens:d}",
        since="0.24.0",
        until="0.33.0",
    ),
    pattern(
        "kv_transfer",
        "KV Transfer metrics: {xfer_metrics:s}",
        since="0.11.0",
        until="0.33.0",
    ),
    pattern(
        "ec_transfer",
        "EC Transfer metrics: {xfer_metrics:s}",
        since="0.31.0",
        until="0.33.0",
    ),
    pattern(
        "mfu",
        "MFU: {tflops:f} TF/s/{:w} {gbps:f} GB/s/{:w}",
        since="0.14.0",
        until="0.33.0",
    ),
    pattern(
        "iteration_detail",
        "Iteration({iteration:d}): {ctx_requests:d} context requests, {ctx_tokens:d} "
        "context tokens, {gen_requests:d} generation requests, {gen_tokens:d} generation tokens, "
        "iteration elapsed time: {elapsed_ms:f} ms[[ (dummy)]]"
        "[[, {device:w} KV cache usage: {kv_usage_pct:f}%]][[, {:s}]]",
        since="0.14.0",
        until="0.33.0",
    ),
    pattern(
        "cudagraph_table",
        "**CUDAGraph Config Settings:**{:s}",
        since="0.13.0",
        until="0.33.0",
        ignored=True,
    ),
    pattern(
        "stats_disabled",
        "AsyncLLM created with api_server_count more than 1; disabling stats logging to avoid "
        "incomplete stats.",
        since="0.10.2",
        until="0.33.0",
    ),
)
