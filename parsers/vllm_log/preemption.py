"""Preemption, swapping and rejected prompts.

V0 (0.4.3 to 0.10.2) warns for preemption number 1, 51, 101, ... only; the number is cumulative
since start. V1 prints nothing, in any release up to 0.33.0. The two `blog_*` shapes were printed
by no release; they circulate in articles and scripts, and people feed them.
"""

import re

from parsers.vllm_log.interface import Fields, LogPattern, pattern

_RUNNING = re.compile(r"\bRunning (\d{1,9}) requests, (\d{1,9}) sequences in the swap out queue")
_PREEMPTED = re.compile(r"\bSequence (\S+) is preempted from (.{1,80}?) to (.{1,80}?)\.?$")


def _blog_running(message: str) -> Fields | None:
    if "swap out queue" not in message:
        return None
    match = _RUNNING.search(message)
    return None if match is None else {"running": int(match[1]), "swapped": int(match[2])}


def _blog_preempted(message: str) -> Fields | None:
    if " is preempted from " not in message:
        return None
    match = _PREEMPTED.search(message)
    if match is None:
        return None
    return {"request_id": match[1], "source": match[2], "target": match[3]}


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
    LogPattern(
        name="blog_preempted", kind="blog_preempted", make_fields=_blog_preempted, gates=("",)
    ),
    LogPattern(
        name="blog_running_swapped",
        kind="blog_running_swapped",
        make_fields=_blog_running,
        gates=("",),
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
