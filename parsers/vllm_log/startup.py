"""What a server states about itself when it starts: version, arguments, configuration, ranks."""

from collections.abc import Iterator

from parsers.vllm_log.interface import Fact, Fields, LogPattern, pattern, plain
from parsers.vllm_log.printed_config import config_facts, namespace_facts, non_default_facts


def _enabled(state: bool) -> Iterator[Fact]:
    yield Fact("prefix_caching.enabled", repr(state))


def _caching_by_action(_message: str, fields: Fields) -> Iterator[Fact]:
    action = plain(fields.get("action", "")).lower().strip("()")
    if action in ("enabling", "enable", "enabled"):
        yield from _enabled(True)
    elif action in ("disabling", "disable", "disabled"):
        yield from _enabled(False)


def _caching_off(_message: str, _fields: Fields) -> Iterator[Fact]:
    return _enabled(False)


def _caching_on(_message: str, _fields: Fields) -> Iterator[Fact]:
    return _enabled(True)


def _falls_back_to_v0(_message: str, _fields: Fields) -> Iterator[Fact]:
    yield Fact("engine.generation", "V0")


_LOGO = "█▀▄"


def _logo_fields(message: str) -> Fields | None:
    if not message or message.lstrip()[:1] not in _LOGO:
        return None
    head, _, tail = message.rpartition("  version ")
    if head and tail:
        return {"version": tail.strip().split()[0]} if tail.strip() else None
    head, _, tail = message.rpartition("  model ")
    return {"model": tail.strip()} if head and tail.strip() else None


def _logo_art(message: str) -> Fields | None:
    return {} if message and not message.strip(" █▀▄") else None


PATTERNS: tuple[LogPattern, ...] = (
    pattern(
        "startup_version",
        "vLLM API server version {version:w}",
        "vLLM server version {version:w}, serving model {model:s}",
        since="0.4.0",
        until="0.33.0",
        facts={"version": "vllm.version", "model": "model.name"},
    ),
    LogPattern(
        name="startup_logo",
        kind="startup_logo",
        make_fields=_logo_fields,
        gates=(" ", *_LOGO),
        since="0.15.0",
        until="0.33.0",
        facts={"version": "vllm.version", "model": "model.name"},
    ),
    LogPattern(
        name="startup_logo_art",
        kind="startup_logo",
        make_fields=_logo_art,
        gates=(" ", *_LOGO),
        since="0.15.0",
        until="0.33.0",
        ignored=True,
    ),
    pattern(
        "startup_args",
        "args: Namespace({:s})",
        since="0.2.0",
        until="0.8.5",
        make_facts=namespace_facts,
    ),
    pattern(
        "startup_non_default_args",
        "non-default args: {:s}",
        since="0.9.0",
        until="0.33.0",
        make_facts=non_default_facts,
    ),
    pattern(
        "engine_config",
        "Initializing an LLM engine[[ (v{version:w})]] with config: {:s}",
        "Initializing a {generation:w} LLM engine (v{version:w}) with config: {:s}",
        since="0.2.0",
        until="0.33.0",
        make_facts=config_facts,
    ),
    pattern(
        "engine_choice_v1",
        "Detected VLLM_USE_V1=1 with {feature_name:s}. Usage should be considered experimental."
        " Please report any issues on Github.",
        kind="engine_choice",
        since="0.8.0",
        until="0.10.2",
    ),
    pattern(
        "engine_choice_v0",
        "{feature_name:s} is experimental on VLLM_USE_V1=1. Falling back to V0 Engine.",
        "{feature_name:s} is not supported by the V1 Engine. Falling back to V0. {:s}",
        kind="engine_choice",
        since="0.8.0",
        until="0.10.2",
        make_facts=_falls_back_to_v0,
    ),
    pattern(
        "platform",
        "Automatically detected platform {platform:w}.",
        since="0.7.0",
        until="0.33.0",
        facts={"platform": "platform"},
    ),
    pattern(
        "platform_none",
        "No platform detected, vLLM is running on UnspecifiedPlatform",
        kind="platform",
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "max_model_len",
        "Using max model len {max_model_len:d}",
        since="0.9.2",
        until="0.33.0",
        facts={"max_model_len": "max_model_len"},
    ),
    pattern(
        "chunked_prefill",
        "Chunked prefill is enabled with max_num_batched_tokens={max_num_batched_tokens:d}.",
        "Chunked prefill is enabled (EXPERIMENTAL).",
        "Chunked prefill is enabled by default for models with max_model_len > 32K. {:s}",
        since="0.4.1",
        until="0.33.0",
        facts={"max_num_batched_tokens": "max_num_batched_tokens"},
    ),
    pattern(
        "batch_defaults",
        "Setting max_num_batched_tokens to {max_num_batched_tokens:d} for {context:s} usage"
        " context.",
        "Defaulting max_num_batched_tokens to {max_num_batched_tokens:d} for {context:s} usage"
        " context.",
        "Setting max_num_seqs to {max_num_seqs:d} for {context:s} usage context.",
        "Defaulting max_num_seqs to {max_num_seqs:d} for {context:s} usage context.",
        since="0.6.5",
        until="0.33.0",
        facts={
            "max_num_batched_tokens": "max_num_batched_tokens",
            "max_num_seqs": "max_num_seqs",
        },
    ),
    pattern(
        "partial_prefills",
        "Concurrent partial prefills enabled with max_num_partial_prefills="
        "{max_num_partial_prefills:d}, max_long_partial_prefills={max_long_partial_prefills:d},"
        " long_prefill_token_threshold={long_prefill_token_threshold:d}",
        since="0.7.3",
        until="0.26.0",
    ),
    pattern(
        "prefix_caching_on",
        "Automatic prefix caching is enabled.",
        kind="prefix_caching_setting",
        since="0.4.0",
        until="0.6.3",
        make_facts=_caching_on,
    ),
    pattern(
        "prefix_caching_off",
        "MLA is enabled; forcing chunked prefill and prefix caching to be disabled.",
        "MLA is enabled on a non-GPU platform; forcing chunked prefill and prefix caching to be"
        " disabled.",
        "[V1][TPU] Disable prefix caching",
        "--enable-prompt-embeds and --enable-prefix-caching are not supported together in V1."
        " Prefix caching has been disabled.",
        "Disabling prefix caching: {reason:s}",
        kind="prefix_caching_setting",
        since="0.7.1",
        until="0.33.0",
        make_facts=_caching_off,
    ),
    pattern(
        "prefix_caching_default",
        "{action:w} prefix caching by default",
        kind="prefix_caching_setting",
        since="0.9.2",
        until="0.33.0",
        make_facts=_caching_by_action,
    ),
    pattern(
        "parallel_ranks",
        "rank {rank:d} in world size {world_size:d} is assigned as DP rank {dp_rank:w}, "
        "PP rank {pp_rank:w}, [[PCP rank {pcp_rank:w}, ]]TP rank {tp_rank:w}"
        "[[, ETP rank {etp_rank:w}]][[, EP rank {ep_rank:w}]][[, EPLB rank {eplb_rank:w}]]",
        since="0.8.0",
        until="0.33.0",
        facts={"world_size": "rank.world_size", "rank": "rank.rank", "dp_rank": "rank.dp_rank"},
    ),
    pattern(
        "attention_backend",
        "Using {backend:s}[[ attention]] backend[[ out of potential backends: {candidates:s}]]"
        "[[ for {scope:s}]][[ on V1 engine]][[ by default{:s}]][[.]]",
        since="0.4.0",
        until="0.33.0",
        facts={"backend": "attention_backend"},
    ),
    pattern(
        "init_engine",
        "init engine (profile, create kv cache, warmup model) took {elapsed:f} s[[econds]]"
        "[[ (compilation: {compile_time:f} s[[ — {:s}]])]]",
        since="0.6.5",
        until="0.33.0",
    ),
    pattern(
        "server_start",
        "Starting vLLM API server[[ {server_index:d}]] on {listen_address:s}",
        "Starting vLLM server on {listen_address:s}",
        since="0.7.3",
        until="0.33.0",
    ),
    pattern(
        "server_routes",
        "Available routes are:",
        "Route: {path:s}, Methods: {methods:s}",
        "Route: {path:s}, Endpoint: {endpoint:s}",
        since="0.5.2",
        until="0.33.0",
        ignored=True,
    ),
    pattern(
        "dtype_cast",
        "Casting {config_dtype:w} to {torch_dtype:w}.",
        "Upcasting {config_dtype:w} to {torch_dtype:w}.",
        "Downcasting {config_dtype:w} to {torch_dtype:w}.",
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "startup_plan",
        "Ignoring unreadable startup plan {path:s}: {error:s}",
        "Startup plan not applied: current free memory ({free_gib:f} GiB) is below the recorded "
        "baseline ({baseline_gib:f} GiB); {:s}",
        "Applying persisted startup plan (fingerprint {fingerprint:w}): kv_cache_memory_bytes="
        "{kv_bytes:d} ({kv_gib:f} GiB), recorded free-memory baseline {baseline_gib:f} GiB, "
        "current {free_gib:f} GiB. {:s}",
        "Saved startup plan to {path:s}",
        "Failed to save startup plan to {path:s}: {error:s}",
        since="0.26.0",
        until="0.33.0",
    ),
)
