"""Make forensics/catalog/metrics.toml from a table of metric families by vLLM release.

The table has one row per family with the columns name, samples, type, labels, unit, first, last,
by_engine, condition, buckets, meaning, notes; it was read out of the sources of 69 releases.
Renames and replacements are not in the table; they stand below, from the deprecation notes in
`vllm/v1/metrics/loggers.py` and `vllm/engine/metrics.py` of the releases named.

Usage: python scripts/metrics_catalogue.py TABLE.tsv > forensics/catalog/metrics.toml
"""

import csv
import re
import sys
from pathlib import Path

from toml_text import Value, tables

HEADER = """\
# Metric families that vLLM exposes, by release. Written by scripts/metrics_catalogue.py.
# A family defined as a counter `vllm:x` is exposed as `vllm:x_total`. All `first`/`last` are
# releases, both included. `hidden` ranges show only with --show-hidden-metrics-for-version.
"""

# Old family -> family that carries the same quantity, and the first release that has it.
RENAMES = {
    "vllm:gpu_cache_usage_perc": ("vllm:kv_cache_usage_perc", "0.9.2"),
    "vllm:gpu_prefix_cache_queries": ("vllm:prefix_cache_queries", "0.9.2"),
    "vllm:gpu_prefix_cache_hits": ("vllm:prefix_cache_hits", "0.9.2"),
    "vllm:time_in_queue_requests": ("vllm:request_queue_time_seconds", "0.6.4"),
    "vllm:time_per_output_token_seconds": ("vllm:inter_token_latency_seconds", "0.10.2"),
}
# Families that went without a namesake: what to look at instead, in words.
REPLACED_BY = {
    "vllm:gpu_prefix_cache_hit_rate": (
        "the increase of vllm:prefix_cache_hits_total over the increase of "
        "vllm:prefix_cache_queries_total (the gauge was a lifetime average of the V0 engine)"
    ),
    "vllm:cpu_prefix_cache_hit_rate": "nothing: V1 has no CPU swap pool",
    "vllm:cpu_cache_usage_perc": "nothing: V1 has no CPU swap pool",
    "vllm:num_requests_swapped": "nothing: V1 never swaps, it recomputes",
    "vllm:model_forward_time_milliseconds": "vllm:request_prefill_time_seconds and _decode_time_",
    "vllm:model_execute_time_milliseconds": "vllm:request_prefill_time_seconds and _decode_time_",
    "vllm:avg_prompt_throughput_toks_per_s": "rate(vllm:prompt_tokens_total[...])",
    "vllm:avg_generation_throughput_toks_per_s": "rate(vllm:generation_tokens_total[...])",
    "vllm:tokens": "vllm:prompt_tokens_total plus vllm:generation_tokens_total",
    "vllm:prompt_tokens_recomputed": "nothing",
    "vllm:spec_decode_draft_acceptance_rate": (
        "the increase of vllm:spec_decode_num_accepted_tokens_total over that of "
        "vllm:spec_decode_num_draft_tokens_total"
    ),
    "vllm:kv_offload_total_bytes": "vllm:kv_offload_load_bytes_total and _store_bytes_total",
    "vllm:kv_offload_total_time": "vllm:kv_offload_load_time_total and _store_time_total",
    "vllm:kv_offload_size": "vllm:kv_offload_load_size and vllm:kv_offload_store_size",
}
# Families whose unit changed under the same name.
UNITS: dict[str, list[Value]] = {
    name: [
        {"first": "0.7.3", "last": "0.8.5", "unit": "blocks"},
        {"first": "0.9.0", "last": "0.11.2", "unit": "tokens"},
    ]
    for name in ("vllm:gpu_prefix_cache_queries", "vllm:gpu_prefix_cache_hits")
}
ENGINE_LABEL_SINCE = "0.8.3"
CACHE_CONFIG_ENGINE_LABEL_SINCE = "0.9.0"


def ranges(text: str) -> list[Value]:
    """`V0 0.4.3..0.10.2; V1 0.8.0..0.33.0` as a list of tables."""
    found: list[Value] = []
    for part in text.split("; "):
        engine, span = part.split(" ", 1)
        first, _, last = span.partition("..")
        found.append({"engine": engine, "first": first, "last": last or first})
    return found


def condition(text: str, notes: str) -> tuple[list[Value], str | None]:
    """Split the hidden ranges off the condition column; some conditions stand in the notes only."""
    match = re.fullmatch(r"(V[01]): only with --show-hidden-metrics-for-version in (\S+)", text)
    if match:
        return ranges(f"{match[1]} {match[2]}"), None
    noted = re.match(r"(?:Only (?:with|on) )?((?:--|a KV connector|KV consumers)[^;.]*)[;.]", notes)
    return [], text or (f"needs {noted[1]}" if noted else None)


def labels(text: str) -> tuple[list[Value], str | None]:
    """The label names, and the first release in which `engine` is one of them under V1."""
    if text.startswith("one label per CacheConfig field"):
        return ["*", "engine"], CACHE_CONFIG_ENGINE_LABEL_SINCE
    names = [re.sub(r" \(.*\)", "", part) for part in text.split(", ") if part]
    return list(names), ENGINE_LABEL_SINCE if "(V1 since 0.8.3)" in text else None


def row(record: dict[str, str]) -> dict[str, Value | None]:
    """One table of the catalogue."""
    name = record["name"]
    label_names, engine_since = labels(record["labels"])
    hidden, needs = condition(record["condition"], record["notes"])
    unit = re.sub(r"^blocks .*", "tokens", record["unit"])
    renamed = RENAMES.get(name)
    origins: list[Value] = [old for old, (new, _) in RENAMES.items() if new == name]
    return {
        "name": name,
        "type": record["type"],
        "samples": list(record["samples"].split()),
        "labels": label_names,
        "engine_label_since": engine_since,
        "unit": unit.replace(' (despite "perc")', ""),
        "units": UNITS.get(name),
        "ranges": ranges(record["by_engine"]),
        "hidden": hidden or None,
        "condition": needs,
        "renamed_to": renamed[0] if renamed else None,
        "renamed_since": renamed[1] if renamed else None,
        "renamed_from": origins or None,
        "replaced_by": REPLACED_BY.get(name),
        "meaning": re.sub(r" See \S+\.md .*", "", record["meaning"]),
        "notes": record["notes"] or None,
    }


def main() -> None:
    """Read the table named on the command line and print the catalogue."""
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as table:
        records = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    sys.stdout.write(HEADER + "\n" + tables("metric", [row(record) for record in records]))


if __name__ == "__main__":
    main()
