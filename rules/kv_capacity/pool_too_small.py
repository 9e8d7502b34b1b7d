"""KV204 pool-too-small: the configuration leaves no, or too little, KV pool.

What it detects
    Start-up errors about the cache, a pool that cannot hold one request of max_model_len, cache
    blocks below max_num_seqs.

Why it matters
    The server does not start, or preempts as soon as a long request comes.

Evidence it needs
    Error lines of the start, or pool size and max_model_len.

How it decides
    A cache error that vLLM prints is certain. A stated pool smaller than max_model_len is certain
    too; the server states it itself as a concurrency below 1.

When it is silent
    The pool holds at least one request of max_model_len and no such error was printed.

False positives
    For hybrid models the token figure is no physical size from 0.21 on; the stated concurrency
    is used first.

What to do
    Raise gpu_memory_utilization, lower max_model_len, use fp8 KV, more GPUs, or a smaller model.

Versions
    Wordings differ by release; all of 0.2 to 0.33 are known.

References
    Log reference 5 (errors).
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.actions import grow_pool
from rules.exhibits import stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity

_MARKS = ("KV cache does not fit", "memory error at start", "KV cache allocation failed")


@dataclass(frozen=True, slots=True)
class PoolTooSmallParams(Params):
    """Thresholds.

    Attributes:
        least_concurrency: requests of max_model_len the pool must hold; 1 by definition.
    """

    least_concurrency: float = 1.0


class PoolTooSmall:
    """The rule. See the module docstring."""

    id = "KV204"
    name = "pool-too-small"
    title = "The configuration leaves too little KV pool"
    severity = Severity.CRITICAL
    needs = ()
    scope = "window"

    def __init__(self, params: PoolTooSmallParams | None = None) -> None:
        self.params = params or PoolTooSmallParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge start-up errors and the stated pool."""
        errors = [mark for mark in case.timeline.marks if mark.text in _MARKS]
        concurrency = self._concurrency(case)
        small = concurrency is not None and concurrency < self.params.least_concurrency
        if not errors and not small:
            return None
        shown = [Exhibit("start", None, mark.text, "event", mark.place) for mark in errors[:3]]
        if concurrency is not None:
            shown.append(
                stated("concurrency", concurrency, "requests of max_model_len", case, "pool")
            )
        onset = errors[0].time if errors else case.window[0]
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.95 if errors else 0.5,
            severity=self.severity if errors else Severity.WARNING,
            summary=Message(
                "KV204.summary" if errors else "KV204.tight",
                {
                    "engine": case.timeline.engine,
                    "error": errors[0].text if errors else None,
                    "concurrency": concurrency,
                    "length": case.epoch.max_model_len,
                },
            ),
            onset=(onset, onset),
            for_=tuple(shown),
            actions=(
                Action(
                    Message("KV204.room"), Message("KV204.room_effect"),
                    "--gpu-memory-utilization 0.95",
                ),
                Action(
                    Message("KV204.shorter"), Message("KV204.shorter_effect"),
                    "--max-model-len <tokens>", 2,
                ),
                grow_pool(case, 3),
            ),
        )  # fmt: skip

    def _concurrency(self, case: Case) -> float | None:
        pool, length = case.epoch.pool, case.epoch.max_model_len
        if pool.max_concurrency is not None:
            return pool.max_concurrency
        return pool.tokens / length if pool.tokens and length else None
