"""Preemption, swapping and rejected prompts.

V0 (0.4.3 to 0.10.2) warns for preemption number 1, 51, 101, ... only; the number is cumulative
since start. V1 prints nothing, in any release up to 0.33.0. The two `blog_*` shapes were printed
by no release; they circulate in articles and scripts, and people feed them.
"""

from parsers.vllm_log.interface import LogPattern, pattern

PATTERNS: tuple[LogPattern, ...] = (
    pattern(
        "preemption",
        "Sequence group {request_id:s} is preempted by [[PreemptionMode.]]{mode:w} mode because "
        "{:s}total_num_cumulative_preemption={total_cumulative:d}",
        "Sequence group {request_id:s} is preempted by [[PreemptionMode.]]{mode:w} mode because "
        "there is not enough KV cache space.{:s}",
        since="0.4.3",
        until="0.10.2",
    ),
    pattern("blog_preempted", "Sequence {request_id:w} is preempted from {source:s} to {target:s}"),
    pattern(
        "blog_running_swapped",
        "Running {running:d} requests, {swapped:d} sequences in the swap out queue[[.]]",
    ),
    pattern(
        "prompt_too_long",
        "Input prompt ({num_prompt_tokens:d} tokens) is too long and exceeds limit of "
        "{prompt_limit:d}",
        "Input prompt ({num_prompt_tokens:d} tokens) is too long and exceeds the capacity of "
        "block_manager",
        "Input prompt ({num_prompt_tokens:d} tokens) + lookahead slots ({num_lookahead_slots:d}) "
        "is too long and exceeds the capacity of block_manager",
        since="0.2.0",
        until="0.10.2",
    ),
    pattern(
        "kv_load_failure",
        "Recovered from KV load failure: {requests:d} request(s) rescheduled ({tokens:d} tokens "
        "affected).",
        "Failing {requests:d} request(s) due to KV load failure (failure_policy=fail, {tokens:d} "
        "tokens affected). Request IDs: {request_ids:s}",
        since="0.11.1",
        until="0.33.0",
    ),
)
