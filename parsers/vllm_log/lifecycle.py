"""Shutdown, sleep and wake, cache resets, adapters: what operators and clients do to a server."""

from parsers.vllm_log.interface import Fields, LogPattern, pattern


def _step(message: str) -> Fields | None:
    part, colon, step = message.removeprefix("[shutdown] ").partition(": ")
    # The process manager clears up after deaths too, before anything says that the engine died.
    if not colon or "exited unexpectedly" in step or part == "Process manager":
        return None
    return {"part": part, "step": step}


PATTERNS: tuple[LogPattern, ...] = (
    pattern(
        "shutdown_begin",
        "Engine is gracefully shutting down.",
        "Shutting down FastAPI HTTP server.",
        "Shutting down.",
        "Shutdown initiated (timeout={:s})",
        "[shutdown] API server: {:s}",
        "[shutdown] MPClient: start timeout={:s}",
        "[shutdown] EngineCore: trigger received signal={signal:w}",
        kind="shutdown",
        since="0.5.0",
        until="0.33.0",
    ),
    pattern(
        "shutdown",
        "Terminating local vLLM worker processes",
        "Shutting down Ray distributed executor. {:s}",
        "WorkerProc was terminated",
        "Aborting {num_requests:d} requests",
        "Draining {num_requests:d} in-flight requests (timeout={:s})",
        "Rejecting request {request_id:s} (server shutting down)",
        "[shutdown] EngineCore: aborting in-flight requests count={num_requests:d}",
        "[shutdown] EngineCore: draining in-flight requests count={num_requests:d} {:s}",
        since="0.4.2",
        until="0.33.0",
    ),
    LogPattern(
        name="shutdown_step",
        kind="shutdown",
        make_fields=_step,
        gates=("[shutdown] ",),
        since="0.23.0",
        until="0.33.0",
    ),
    pattern(
        "sleep",
        "Sleep mode freed {freed_gib:f} GiB memory, {used_gib:f} GiB memory is still in use.",
        "sleep the engine with level {level:d}",
        "It took {seconds:f} seconds to fall asleep.",
        "Executor is already sleeping.",
        "Waiting for in-flight requests to complete before sleeping...",
        kind="sleep",
        constants={"state": "sleep"},
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "wake",
        "wake up the engine[[ with tags: {tags:s}]]",
        "It took {seconds:f} seconds to wake up[[ tags {tags:s}]].",
        "Executor is not sleeping.",
        kind="sleep",
        constants={"state": "wake"},
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "sleep_query",
        "check whether the engine is sleeping",
        kind="sleep",
        constants={"state": "query"},
        since="0.8.0",
        until="0.17.0",
    ),
    pattern(
        "cache_reset",
        "Successfully reset prefix cache",
        constants={"done": True},
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "cache_reset_failed",
        "Failed to reset prefix cache because some blocks ({num_used_blocks:d}) are not freed yet",
        kind="cache_reset",
        constants={"done": False},
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "cache_reset_http",
        "Resetting {cache:w} cache...",
        "Resetting {cache:w} cache with specific {device:s}...",
        since="0.7.0",
        until="0.33.0",
    ),
    pattern(
        "lora",
        "Loaded new LoRA adapter: name '{lora_name:s}', path '{lora_path:s}'",
        "Removed LoRA adapter: name '{lora_name:s}'",
        "LoRA dynamic loading & unloading is enabled in the API server. {:s}",
        "Lora dynamic loading & unloading is enabled in the API server. {:s}",
        since="0.6.1",
        until="0.33.0",
    ),
    pattern(
        "engine_process_start",
        "Started engine process with PID {pid:d}",
        since="0.5.2",
        until="0.10.2",
    ),
)
