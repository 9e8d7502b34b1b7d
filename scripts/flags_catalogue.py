"""Make forensics/catalog/flags.toml from a table of server flags by vLLM release.

The table has one row per flag with the columns flag, group, first, last, default_by_range, notes;
it was read out of the argument parsers of 69 releases. What kind of value a flag takes, whether it
works under V0 only and which flags exclude each other is not in the table; it stands below, from
`vllm/engine/arg_utils.py` of the releases named. So do the names of the remaining options of
`vllm serve`, without releases: enough to tell an option that exists from a slip of the pen.

Usage: python scripts/flags_catalogue.py TABLE.tsv > forensics/catalog/flags.toml
"""

import csv
import re
import sys
from pathlib import Path

from toml_text import Value, inline, tables

HEADER = """\
# Flags of the vLLM server that bear on batching, caching and memory, by release. Written by
# scripts/flags_catalogue.py. `first`/`last` are releases, both included. `others` are the remaining
# options of `vllm serve`, of any release.
"""
KINDS = {
    "--max-num-seqs": "int",
    "--max-num-active-seqs": "int",
    "--max-num-batched-tokens": "int",
    "--max-num-scheduled-tokens": "int",
    "--max-num-queued-reqs": "int",
    "--max-num-queued-tokens": "int",
    "--scheduling-policy": "choice",
    "--preemption-mode": "choice",
    "--preemption_mode": "choice",
    "--scheduler-reserve-full-isl": "bool",
    "--async-scheduling": "bool",
    "--scheduler-cls": "text",
    "--enable-chunked-prefill": "bool",
    "--enable-prefix-caching": "bool",
    "--prefix-caching-hash-algo": "text",
    "--prefix-match-unit": "int",
    "--prefix-cache-retention-interval": "int",
    "--block-size": "int",
    "--gpu-memory-utilization": "fraction",
    "--watermark": "fraction",
    "--kv-cache-metrics-sample": "fraction",
    "--kv-cache-memory-bytes": "size",
    "--num-gpu-blocks-override": "int",
    "--forced-num-gpu-blocks": "int",
    "--swap-space": "float",
    "--cpu-offload-gb": "float",
    "--kv-offloading-size": "float",
    "--kv-offloading-backend": "text",
    "--kv-transfer-config": "json",
    "--kv-cache-dtype": "text",
    "--kv-cache-dtype-skip-layers": "text",
    "--calculate-kv-scales": "bool",
    "--quantization-param-path": "text",
    "--max-model-len": "length",
    "--use-v2-block-manager": "bool",
    "--disable-hybrid-kv-cache-manager": "bool",
    "--mamba-block-size": "int",
    "--mamba-cache-dtype": "text",
    "--mamba-ssm-cache-dtype": "text",
    "--mamba-cache-mode": "text",
    "--api-server-count": "int",
    "--dtype": "choice",
    "--quantization": "text",
    "--enforce-eager": "bool",
    "--speculative-config": "json",
    "--speculative-model": "text",
    "--num-speculative-tokens": "int",
    "--performance-mode": "choice",
    "--log-level": "text",
    "--log-config-file": "text",
    "--logging-config": "text",
    "--show-hidden-metrics-for-version": "text",
    "--custom-histogram-buckets": "text",
    "--max-log-len": "int",
    "--uvicorn-log-level": "choice",
    "--disable-access-log-for-endpoints": "text",
    "--enable-log-requests": "bool",
    "--disable-log-requests": "bool",
    "--mm-ipc-gpu-memory-gb": "float",
}
CHOICES: dict[str, list[Value]] = {
    "--scheduling-policy": ["fcfs", "priority"],
    "--preemption-mode": ["recompute", "swap"],
    "--preemption_mode": ["recompute", "swap"],
    "--dtype": ["auto", "half", "float16", "bfloat16", "float", "float32"],
    "--performance-mode": ["balanced", "interactivity", "throughput"],
    "--uvicorn-log-level": ["debug", "info", "warning", "error", "critical", "trace"],
}
# Accepted, or gone, but without any effect on the V1 engine.
V0_ONLY = {
    "--preemption-mode",
    "--preemption_mode",
    "--swap-space",
    "--scheduler-delay-factor",
    "--num-scheduler-steps",
    "--multi-step-stream-outputs",
    "--num-lookahead-slots",
    "--max-num-partial-prefills",
    "--max-long-partial-prefills",
    "--max-seq-len-to-capture",
    "--use-v2-block-manager",
    "--quantization-param-path",
    "--max-paddings",
}
ALIASES: dict[str, list[Value]] = {
    "--tensor-parallel-size": ["-tp"],
    "--pipeline-parallel-size": ["-pp"],
    "--data-parallel-size": ["-dp"],
    "--decode-context-parallel-size": ["-dcp"],
    "--prefill-context-parallel-size": ["-pcp"],
    "--quantization": ["-q"],
    "--enable-expert-parallel": ["-ep"],
    "--api-server-count": ["-asc"],
    "--kv-cache-memory-bytes": ["--kv-cache-memory"],
    "--speculative-config": ["-sc"],
}
# What does the work of a flag that is gone; a plain name with the same values, or words.
RENAMED_TO = {
    "--preemption_mode": "--preemption-mode",
    "--forced-num-gpu-blocks": "--num-gpu-blocks-override",
}
REPLACED_BY = {
    "--swap-space": "--kv-offloading-size (CPU offload of KV blocks, 0.11.1 and later)",
    "--preemption-mode": "nothing: V1 always recomputes",
    "--disable-log-requests": "nothing: off unless --enable-log-requests is given",
    "--num-scheduler-steps": "nothing: V1 has no multi-step scheduling",
    "--speculative-model": "--speculative-config '{\"model\": …}'",
    "--num-speculative-tokens": "--speculative-config '{\"num_speculative_tokens\": …}'",
    "--max-seq-len-to-capture": "nothing: V1 captures by batch size, see --compilation-config",
    "--scheduler-delay-factor": "nothing",
    "--num-lookahead-slots": "nothing: follows from --speculative-config",
    "--use-v2-block-manager": "nothing: the newer block manager is the only one",
}
# Pairs that exclude each other, with what happens.
CONFLICTS: list[dict[str, Value | None]] = [
    {
        "flags": ["--kv-cache-memory-bytes", "--gpu-memory-utilization"],
        "why": "--kv-cache-memory-bytes fixes the pool, so the utilization no longer sizes it",
    },
    {
        "flags": ["--num-gpu-blocks-override", "--kv-cache-memory-bytes"],
        "why": "both fix the size of the pool",
    },
    {
        "flags": ["--num-gpu-blocks-override", "--gpu-memory-utilization"],
        "why": "--num-gpu-blocks-override fixes the pool, so the utilization no longer sizes it",
    },
    {
        "flags": ["--enable-log-requests", "--disable-log-requests"],
        "why": "one turns request lines on, the other off",
    },
    {
        "flags": ["--disable-log-stats", "--kv-cache-metrics"],
        "why": "--disable-log-stats removes the engine metrics, the block histograms included",
    },
    {
        "flags": ["--disable-log-stats", "--show-hidden-metrics-for-version"],
        "why": "--disable-log-stats removes the engine metrics, hidden or not",
    },
]
OTHERS = """
model model-tag task runner convert tokenizer hf-config-path tokenizer-mode trust-remote-code seed
allowed-local-media-path allowed-media-domains revision code-revision rope-scaling rope-theta
hf-token hf-overrides tokenizer-revision max-logprobs logprobs-mode disable-sliding-window
disable-cascade-attn skip-tokenizer-init served-model-name generation-config config-format
override-generation-config model-impl override-attention-dtype logits-processors
logits-processor-pattern io-processor-plugin enable-prompt-embeds pooler-config renderer-num-workers
override-pooler-config override-neuron-config load-format download-dir safetensors-load-strategy
model-loader-extra-config ignore-patterns use-tqdm-on-load pt-load-map-location
guided-decoding-backend guided-decoding-disable-fallback guided-decoding-disable-any-whitespace
guided-decoding-disable-additional-properties structured-outputs-config reasoning-parser
reasoning-parser-plugin enable-reasoning distributed-executor-backend worker-use-ray
engine-use-ray max-parallel-loading-workers ray-workers-use-nsight disable-custom-all-reduce
tokenizer-pool-size tokenizer-pool-type tokenizer-pool-extra-config worker-cls worker-extension-cls
enable-dbo ubatch-size dbo-decode-token-threshold dbo-prefill-token-threshold
disable-nccl-for-dp-synchronization enable-eplb eplb-config expert-placement-strategy
num-redundant-experts eplb-window-size eplb-step-interval eplb-log-balancedness all2all-backend
data-parallel-rank data-parallel-start-rank data-parallel-size-local data-parallel-address
data-parallel-rpc-port data-parallel-backend data-parallel-hybrid-lb data-parallel-external-lb
data-parallel-supervisor-port data-parallel-multi-port-external-lb dp-supervisor-probe-interval-s
dp-supervisor-probe-timeout-s dp-supervisor-probe-failure-threshold cp-kv-cache-interleave-size
dcp-kv-cache-interleave-size master-addr master-port nnodes node-rank headless api-process-count
api-process-rank limit-mm-per-prompt enable-mm-embeds interleave-mm-strings media-io-kwargs
mm-processor-kwargs mm-processor-cache-gb disable-mm-preprocessor-cache mm-processor-cache-type
mm-shm-cache-max-object-size-mb mm-encoder-only mm-encoder-tp-mode mm-encoder-attn-backend
video-pruning-rate skip-mm-profiling image-input-type image-token-id
image-input-shape image-feature-size enable-lora-bias max-lora-rank lora-extra-vocab-size
long-lora-scaling-factors lora-dtype max-cpu-loras fully-sharded-loras default-mm-loras
lora-modules prompt-adapters enable-prompt-adapter max-prompt-adapters max-prompt-adapter-token
qlora-adapter-name-or-path device otlp-traces-endpoint collect-detailed-traces
disable-async-output-proc speculative-model-quantization
speculative-draft-tensor-parallel-size speculative-max-model-len speculative-disable-by-batch-size
speculative-disable-mqa-scorer ngram-prompt-lookup-max ngram-prompt-lookup-min
spec-decoding-acceptance-method typical-acceptance-sampler-posterior-threshold
typical-acceptance-sampler-posterior-alpha disable-logprobs-during-spec-decoding
cuda-graph-sizes cudagraph-capture-sizes max-cudagraph-capture-size
compilation-config attention-backend attention-config kernel-config moe-backend
linear-backend kv-sharing-fast-prefill kv-events-config ec-transfer-config additional-config
disable-chunked-mm-input stream-interval enable-layerwise-nvtx-tracing profiler-config
enable-multimodal-encoder-data-parallel weight-transfer-config
offload-backend offload-group-size offload-num-in-group offload-prefetch-step offload-params
cpu-offload-params disable-fastapi-docs host port uds allow-credentials allowed-origins
allowed-methods allowed-headers api-key chat-template chat-template-content-format
trust-request-chat-template default-chat-template-kwargs response-role ssl-keyfile ssl-certfile
ssl-ca-certs enable-ssl-refresh ssl-cert-reqs ssl-ciphers root-path middleware
return-tokens-as-token-ids disable-frontend-multiprocessing enable-request-id-headers
enable-auto-tool-choice exclude-tools-when-tool-choice-none tool-call-parser tool-parser-plugin
tool-server enable-prompt-tokens-details enable-per-request-metrics enable-server-load-tracking
enable-force-include-usage enable-tokenizer-info-endpoint enable-log-outputs enable-log-deltas
log-error-stack tokens-only h11-max-incomplete-event-size h11-max-header-count enable-offline-docs
enable-flash-late-interaction fingerprint-mode fingerprint-value cohere-is-reasoning-model
cohere-format config help version grpc shutdown-timeout
language-model-only fail-on-environ-validation structured-output-config
numa-bind numa-bind-nodes numa-bind-cpus
"""


def kind(record: dict[str, str]) -> str:
    """Tell what a flag takes, from the table above or from its default."""
    known = KINDS.get(record["flag"])
    if known:
        return known
    default = re.split(r": ", record["default_by_range"].split("; ")[0])[-1]
    if default in ("False", "True"):
        return "bool"
    if re.fullmatch(r"\d+", default):
        return "int"
    if re.fullmatch(r"\d+\.\d+", default):
        return "float"
    raise SystemExit(f"add {record['flag']} to KINDS: its default {default!r} does not tell")


def row(record: dict[str, str]) -> dict[str, Value | None]:
    """One table of the catalogue."""
    name = record["flag"]
    return {
        "name": name,
        "group": record["group"],
        "kind": kind(record),
        "choices": CHOICES.get(name),
        "aliases": ALIASES.get(name),
        "first": record["first"],
        "last": record["last"],
        "v0_only": True if name in V0_ONLY else None,
        "renamed_to": RENAMED_TO.get(name),
        "replaced_by": REPLACED_BY.get(name),
        "notes": re.sub(
            r"(?:: |; )?[^.;]*see [\w-]+\.md\.?| See [\w-]+\.md[^.]*\.", "", record["notes"]
        )
        or None,
    }


def main() -> None:
    """Read the table named on the command line and print the catalogue."""
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as table:
        records = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    known = {record["flag"].removeprefix("--") for record in records}
    others: Value = [f"--{name}" for name in sorted(set(OTHERS.split()) - known)]
    sys.stdout.write(
        f"{HEADER}\nothers = {inline(others)}\n\n"
        + tables("flag", [row(record) for record in records])
        + "\n"
        + tables("conflict", CONFLICTS)
    )


if __name__ == "__main__":
    main()
