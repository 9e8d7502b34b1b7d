"""What to do, spelled as in the epoch's vLLM version: the actions that several causes share.

Each says what it will not do, too: lowering ``max_num_seqs`` stops preemption and bounds latency
but does not by itself bring hits back (batch-ceiling.md, section 1).
"""

from forensics.catalog.messages import Message
from rules.interface import Action, Case


def lower_batch(case: Case, rank: int) -> Action:
    """Lower the batch limit to the ceiling this analysis recommends."""
    return Action(
        Message("action.lower_batch", {"current": case.epoch.max_num_seqs}),
        Message("effect.lower_batch"),
        "--max-num-seqs <ceiling>",
        rank,
    )


def admission_limit(case: Case, rank: int) -> Action:
    """Bound live sessions in front of the engine; from 0.32 the server can do it itself."""
    newer = case.epoch.before(0, 32)
    return Action(
        Message("action.admission"),
        Message("effect.admission"),
        "--max-num-queued-reqs <limit>" if newer is False else None,
        rank,
    )


def route_by_prefix(case: Case, rank: int) -> Action:
    """Keep one session or tenant on one replica; the gain is the prefill time saved."""
    saved = case.before.hit_per_request if case.before is not None else None
    return Action(Message("action.route", {"tokens": saved}), Message("effect.route"), None, rank)


def grow_pool(case: Case, rank: int) -> Action:
    """Make room: fp8 KV halves the bytes per token; replicas and offload tiers add blocks."""
    fp8 = (case.epoch.kv_cache_dtype or "auto").startswith("fp8")
    return Action(
        Message("action.replicas" if fp8 else "action.fp8"),
        Message("effect.grow_pool"),
        None if fp8 else "--kv-cache-dtype fp8",
        rank,
    )


def probe(rank: int) -> Action:
    """Ask the server itself: repeat a unique prompt after growing gaps."""
    return Action(Message("action.probe"), Message("effect.probe"), None, rank)


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
