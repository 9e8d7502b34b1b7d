"""What to do, spelled as in the epoch's vLLM version: the actions that several causes share.

Each says what it will not do, too: lowering ``max_num_seqs`` stops preemption and bounds latency
but does not by itself bring hits back (batch-ceiling.md, section 1). Effects are estimated from the
case's own figures where those were seen.
"""

from math import ceil

from forensics.catalog.flags_catalog import flag
from forensics.catalog.messages import Message
from forensics.catalog.versions import V1_DEFAULT, Version
from forensics.diary import Epoch
from forensics.diary.values import real
from rules.interface import Action, Case

# Below this many computed tokens the prefill time is the step's own, not that of the tokens (guess:
# the default block).
_LEAST_COMPUTED = 16.0


def spelled(epoch: Epoch, name: str, value: str = "") -> str | None:
    """Write a flag as the epoch's release takes it; None when that release does not have it.

    Where the release is unknown, only flags that every V1 release has are written.
    """
    known = flag(name)
    if known is None:
        return None
    if epoch.version is not None:
        release = Version((epoch.version.major, epoch.version.minor, epoch.version.patch))
        there = release in known.span or release > known.span.last == _newest()
        if not there or (known.v0_only and epoch.generation == "V1"):
            return None
    elif known.span.first > V1_DEFAULT or known.span.last < _newest():
        return None
    return f"{name} {value}".strip()


def _newest() -> Version:
    """Give the newest release of the catalogue: flags that reach it are taken to go on."""
    every = flag("--max-num-seqs")
    return every.span.last if every is not None else V1_DEFAULT


def lower_batch(case: Case, rank: int) -> Action:
    """Lower the batch limit to the ceiling this analysis recommends."""
    return Action(
        Message("action.lower_batch", {"current": case.epoch.max_num_seqs}),
        Message("effect.lower_batch"),
        "--max-num-seqs <ceiling>",
        rank,
    )


def admission_limit(case: Case, rank: int) -> Action:
    """Bound live sessions in front of the engine; newer releases can do it themselves."""
    return Action(
        Message("action.admission"),
        Message("effect.admission"),
        spelled(case.epoch, "--max-num-queued-reqs", "<limit>"),
        rank,
    )


def route_by_prefix(case: Case, rank: int) -> Action:
    """Keep one session or tenant on one replica; the gain is the prefill time saved."""
    return Action(Message("action.route"), _routing_gain(case), None, rank)


def _routing_gain(case: Case) -> Message:
    """Estimate what the hits of before would save now: tokens times the prefill time of one."""
    before, after = case.before, case.after
    old = before.hit_per_request if before is not None else None
    new, computed, prefill = after.hit_per_request, after.miss_per_request, after.prefill_s
    if old is None or new is None or computed is None or prefill is None or old <= new:
        return Message("effect.route")
    if computed < _LEAST_COMPUTED:
        return Message("effect.route")
    saved = min(old - new, computed)
    return Message(
        "effect.route_gain",
        {
            "prompt": new + computed,
            "saved": saved,
            "gain": saved * prefill / computed,
            "prefill": prefill,
        },
    )


def larger_pool(case: Case, rank: int) -> tuple[Action, ...]:
    """Give every way to more blocks: a smaller data type, a second pool, a tier outside the GPU."""
    actions = [grow_pool(case, rank)]
    if not _is_fp8(case):
        actions.append(Action(Message("action.replicas"), Message("effect.replicas"), None, rank))
    return (*actions, offload(case, rank))


def grow_pool(case: Case, rank: int) -> Action:
    """Make room: fp8 KV halves the bytes per token; where it is in use, replicas add blocks."""
    if _is_fp8(case):
        return Action(Message("action.replicas"), Message("effect.replicas"), None, rank)
    early = case.epoch.generation == "V1" and case.epoch.before(0, 8, 2) is True
    command = None if early else spelled(case.epoch, "--kv-cache-dtype", "fp8")
    return Action(Message("action.fp8"), _pool_gain(case), command, rank)


def _is_fp8(case: Case) -> bool:
    return (case.epoch.kv_cache_dtype or "auto").startswith("fp8")


def _pool_gain(case: Case) -> Message:
    """Estimate what twice the blocks would hold: running requests of this size, and idle blocks."""
    tokens, usage, each = case.epoch.pool.tokens, case.after.usage, case.after.usage_per_running
    if not tokens or usage is None or not each:
        return Message("effect.grow_pool")
    return Message(
        "effect.pool_gain",
        {
            "tokens": tokens,
            "twice": 2 * tokens,
            "fit": max(1, int(1.0 / each)),
            "fit_then": max(1, int(2.0 / each)),
            "free": (1.0 - usage) * tokens,
            "free_then": (2.0 - usage) * tokens,
        },
    )


def offload(case: Case, rank: int) -> Action:
    """Keep evicted blocks in host memory: as much again as the pool holds, where that is said."""
    held = real(case.epoch.memory.get("kv_gib"))
    size = ceil(held * case.epoch.tensor_parallel_size) if held else None
    tokens = case.epoch.pool.tokens
    effect = (
        Message("effect.offload_gain", {"gib": size, "tokens": tokens})
        if size and tokens
        else Message("effect.offload")
    )
    command = spelled(case.epoch, "--kv-offloading-size", str(size or "<GiB>"))
    return Action(Message("action.offload"), effect, command, rank)


def probe(rank: int) -> Action:
    """Ask the server itself: repeat a unique prompt after growing gaps."""
    return Action(Message("action.probe"), Message("effect.probe"), None, rank)


def potential(case: Case) -> Message:
    """Say how request contents get into the log of this release: they decide diversity exactly.

    Logged by default up to 0.10.0; from 0.11.1 prompts stand in DEBUG lines only (log reference 6).
    """
    if case.epoch.before(0, 10, 1) is True:
        return Message("decide.potential_on")
    quiet = case.epoch.before(0, 11, 1) is not True
    level = "VLLM_LOGGING_LEVEL=DEBUG " if quiet else ""
    return Message("decide.potential", {"how": f"{level}--enable-log-requests"})


def fix_template(rank: int) -> Action:
    """Put stable text first in the prompt."""
    return Action(Message("action.template"), Message("effect.template"), None, rank)


def larger_batch(rank: int) -> Action:
    """Raise the batch where traffic shares nothing: there is no cache to protect."""
    return Action(
        Message("PC108.batch"), Message("PC108.batch_effect"), "--max-num-seqs <ceiling>", rank
    )


def wait_or_warm(rank: int) -> Action:
    """Let the cache refill, or warm it."""
    return Action(Message("action.warm"), Message("effect.warm"), None, rank)
