"""Errors that end a start, a request or a server, and the lines around them.

Most stand as the last line of a Python traceback, with or without logger prefix. The exception's
type is split off before the shapes are tried, so they hold the message only.
"""

from collections.abc import Iterator

from parsers.vllm_log.interface import Fact, Fields, LogPattern, pattern, plain

_GIB = {"KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10}


def _gib(text: str) -> float | None:
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _GIB[unit]
    except (ValueError, KeyError):
        return None


def _oom_facts(_message: str, fields: Fields) -> Iterator[Fact]:
    total = _gib(plain(fields.get("total", "")))
    if total is not None:
        yield Fact("gpu.total_gib", f"{total:g}")


def _free_memory_facts(_message: str, fields: Fields) -> Iterator[Fact]:
    if "total_gib" in fields:
        yield Fact("gpu.total_gib", plain(fields["total_gib"]))


def _dump_facts(message: str, _fields: Fields) -> Iterator[Fact]:
    version = message.partition("(v")[2].partition(")")[0]
    if version:
        yield Fact("vllm.version", version)


PATTERNS: tuple[LogPattern, ...] = (
    pattern(
        "oom",
        "CUDA out of memory. Tried to allocate {size:s}. GPU {gpu:d} has a total "
        "capac[[i]]ty of {total:s} of which {free:s} is free.{:s}",
        "CUDA out of memory. Tried to allocate {size:w} {unit:w}.{:s}",
        "CUDA out of memory. {:s}",
        "HIP out of memory. Tried to allocate {:s}",
        since="0.2.0",
        until="0.33.0",
        make_facts=_oom_facts,
    ),
    pattern(
        "kv_error_none",
        "No available memory for the cache blocks.{:s}",
        kind="kv_error",
        constants={"reason": "no memory for cache blocks"},
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "kv_error_len",
        "The model's max seq len ({max_model_len:d}) is larger than the maximum number of tokens "
        "that can be stored in KV cache ({max_kv_tokens:d}).{:s}",
        "To serve at least one request with the model's max seq len ({max_model_len:d}), "
        "({needed_gib:f} G[[i]]B KV cache is needed, which is larger than the available KV cache "
        "memory ({available_gib:f} G[[i]]B).{:s}",
        "To serve at least one request with the models's max seq len ({max_model_len:d}), "
        "({needed_gib:f} G[[i]]B KV cache is needed, which is larger than the available KV cache "
        "memory ({available_gib:f} G[[i]]B).{:s}",
        kind="kv_error",
        constants={"reason": "max_model_len above the pool"},
        since="0.2.7",
        until="0.33.0",
    ),
    pattern(
        "kv_error_autofit",
        "Cannot auto-fit max_model_len: {:s}",
        kind="kv_error",
        constants={"reason": "no single token fits"},
        since="0.14.0",
        until="0.33.0",
    ),
    pattern(
        "kv_error_mamba",
        "max_num_seqs ({max_num_seqs:d}) exceeds available Mamba cache blocks ({num_blocks:s})."
        "{:s}",
        kind="kv_error",
        constants={"reason": "max_num_seqs above the cache blocks"},
        since="0.20.0",
        until="0.33.0",
    ),
    pattern(
        "memory_error",
        "Free memory on device [[{device:w} ]]({free_gib:f}/{total_gib:f} GiB) on startup is less "
        "than {:s} ({utilization:f}, {needed_gib:f} GiB).{:s}",
        "Free memory on device ({free_gib:f}/{total_gib:f} GiB) on startup is less than desired "
        "GPU memory utilization ({utilization:f}, {needed_gib:f} GiB).{:s}",
        "Externally held weights on device {device:w} ({held_gib:f}/{total_gib:f} GiB) exceed the "
        "desired GPU memory utilization ({utilization:f}, {needed_gib:f} GiB).{:s}",
        since="0.9.1",
        until="0.33.0",
        make_facts=_free_memory_facts,
    ),
    pattern(
        "memory_error_profiling",
        "Error in memory profiling.[[ Initial free memory {free_gib:f} GiB, current free memory "
        "{free_now_gib:f} GiB.]]{:s}",
        kind="memory_error",
        since="0.4.0",
        until="0.33.0",
    ),
    pattern(
        "memory_error_warmup",
        "CUDA out of memory occurred when warming up {part:s} with {num_reqs:d} dummy requests."
        "{:s}",
        kind="memory_error",
        since="0.8.0",
        until="0.33.0",
    ),
    pattern(
        "swap_error",
        "Aborted due to the lack of CPU swap space. {:s}",
        "Too large swap space. {:s}",
        since="0.2.0",
        until="0.17.0",
    ),
    pattern(
        "kv_alloc_error",
        "Out of memory! No free blocks are available.",
        since="0.2.0",
        until="0.6.3",
    ),
    pattern(
        "cache_reset_error",
        "Failed to reset KV cache even when {:s}",
        since="0.12.0",
        until="0.33.0",
    ),
    pattern(
        "engine_death_exc",
        "Background loop is not running. {:s}",
        "Background loop has errored already.",
        "Background loop is stopped.",
        "RPC call to {method:s} timed out.",
        "Engine core initialization failed. See root cause above."
        "[[ Failed core proc(s): {failed:s}]]",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "Timed out waiting for {what:s}",
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "engine_death",
        "Engine background task failed",
        "Engine iteration timed out. This should never happen!",
        "Worker {name:s} pid {pid:w} died, exit code: {exit_code:w}",
        "Worker failed",
        "AsyncLLMEngine has failed, terminating server process",
        "AsyncLLMEngine is already dead, terminating server process",
        "MQLLMEngine is already dead, terminating server process",
        "Got fatal signal from worker processes, shutting down. {:s}",
        "EngineCore hit an exception: {error:s}",
        "EngineCore output handler hit an error: {error:s}",
        "MulitprocExecutor got fatal signal from worker processes, shutting down. {:s}",
        "WorkerProc hit an exception[[: {error:s}]]",
        "WorkerProc hit an exception.",
        "Invocation of {method:s} method failed",
        "EngineCore failed to start.",
        "EngineCore encountered a fatal error.",
        "vLLM shutdown signal from EngineCore failed to send. Please report this issue.",
        "AsyncLLM output_handler failed.",
        "Worker proc {name:s} died unexpectedly[[ (exit code: {exit_code:w})]], shutting down "
        "executor.",
        "WorkerProc failed to start.",
        "WorkerProc failed.",
        "Engine core proc {name:s} died unexpectedly, shutting down client.",
        "RayWorkerProc failed: {error:s}",
        "RayWorkerProc rank={rank:w} died unexpectedly, shutting down executor.",
        "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup",
        since="0.4.0",
        until="0.33.0",
    ),
    pattern(
        "engine_dump_config",
        "Dumping input data for V1 LLM engine (v{version:w}) with config: {:s}",
        kind="engine_dump",
        since="0.9.2",
        until="0.33.0",
        make_facts=_dump_facts,
    ),
    pattern(
        "engine_dump_stats",
        "Dumping scheduler stats: SchedulerStats(num_running_reqs={running:d}, num_waiting_reqs="
        "{waiting:d}, {:s}kv_cache_usage={kv_cache_usage:f}, {:s}",
        "Dumping scheduler stats: SchedulerStats(num_running_reqs={running:d}, num_waiting_reqs="
        "{waiting:d}, {:s}",
        kind="engine_dump",
        since="0.9.0",
        until="0.33.0",
    ),
    pattern(
        "engine_dump",
        "Dumping input data",
        "Dumping scheduler output for model execution: {:s}",
        "Dumping scheduler output for model execution:",
        "Dumping scheduler stats: {:s}",
        since="0.9.0",
        until="0.33.0",
    ),
    pattern(
        "ipc_stall",
        "No available[[ shared memory broadcast]] block found in {seconds:d} second[[s]]. {:s}",
        since="0.5.1",
        until="0.33.0",
    ),
)
