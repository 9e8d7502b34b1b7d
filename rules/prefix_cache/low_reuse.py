"""PC108 low-reuse-workload: there never was reuse to lose.

What it detects
    Traffic whose prompts share next to nothing: a low hit rate from the first request on, in a pool
    that had room to keep everything.

Why it matters
    Caching is not the lever here. Whoever tunes the cache, or keeps the batch small to protect it,
    gives throughput away for nothing.

Evidence it needs
    The interval hit rate, token counters, and the size of the pool, to rule eviction out.

How it decides
    The hit rate stays below 0.2 over at least 100 requests and no stretch of eight points is above
    it. A workload of nine tenths reuse that is being evicted looks the same, so the pool must be
    shown innocent: when fewer tokens were written than the pool holds free, nothing was recycled
    and the rate is that of an infinite cache. A residence time of five minutes or more makes it
    likely; a short one leaves it open.

When it is silent
    Any stretch had reuse, caching is off, prompts do not fill two blocks, or blocks are recycled
    within seconds.

False positives
    Sessions that come back after longer than the data last.

What to do
    Raise the batch to the ceiling; ignore the hit rate; do not buy pool for it.

Versions
    All with prefix caching.

References
    Batch-ceiling reference 7.4 and section 8 (classes: one-off documents at most 10 % shared).
"""

from dataclasses import dataclass

from forensics.attribution import Figures
from forensics.catalog.messages import Message
from rules.actions import larger_batch, potential, probe
from rules.exhibits import compare, stated
from rules.interface import Case, Opinion, Params, Severity
from rules.workload import best_rate, workload


@dataclass(frozen=True, slots=True)
class LowReuseParams(Params):
    """Thresholds.

    Attributes:
        low_rate: hit rate below which a larger batch is the better lever, ratio; upper end of
            what batch-ceiling.md 7.4 gives (10 to 20 %).
        surely_low: lower end of the same, ratio.
        least_requests: requests behind the rate; 100 is diagnosis.md, section 0.
        long_residence_s: seconds a block survives that cover think times of 10 to 60 s several
            times over (batch-ceiling.md 5.3).
        short_residence_s: below this, eviction is the likelier story (longest think time there).
    """

    low_rate: float = 0.2
    surely_low: float = 0.1
    least_requests: float = 100.0
    long_residence_s: float = 300.0
    short_residence_s: float = 60.0


class LowReuse:
    """The rule. See the module docstring."""

    id = "PC108"
    name = "low-reuse-workload"
    title = "There never was reuse to lose"
    severity = Severity.INFO
    needs = ("hit_rate",)
    scope = "window"

    def __init__(self, params: LowReuseParams | None = None) -> None:
        self.params = params or LowReuseParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge the whole window."""
        seen = case.after
        if case.epoch.prefix_caching is False or seen.hit_rate is None:
            return None
        best = best_rate(case)
        if best is None or max(best, seen.hit_rate) >= self.params.low_rate:
            return None
        block = case.epoch.pool.block_size
        too_short = block and seen.prompt_len is not None and seen.prompt_len < 2 * block
        if too_short or (seen.requests or 0.0) < self.params.least_requests:
            return None
        innocence = self._pool_innocent(case, seen)
        if innocence == 0.0:
            return None
        weight = innocence * self._lowness(max(best, seen.hit_rate))
        pool = case.epoch.pool.tokens
        shown = (
            *compare(case, "hit_rate", "written_tokens", "residence_s", "usage_max"),
            *workload(case),
        )
        if pool:
            shown = (*shown, stated("kv_pool", float(pool), "tokens", case, "pool"))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity,
            summary=Message(
                "PC108.summary",
                {"engine": case.timeline.engine, "rate": seen.hit_rate, "best": best},
            ),
            onset=(case.window[0], case.window[0]),
            for_=shown,
            against=compare(case, "preemptions", "saturated"),
            actions=(
                larger_batch(1),
                probe(2),
            ),
            would_decide=None if innocence >= 0.9 else potential(case),
            missing=() if pool else ("pool size",),
        )  # fmt: skip

    def _pool_innocent(self, case: Case, seen: Figures) -> float:
        """Give 0-1: how sure it is that no reusable block was recycled before its reuse."""
        pool, written = case.epoch.pool.tokens, seen.written_tokens
        if pool and written is not None and written <= pool * (1.0 - (seen.usage or 0.0)):
            return 0.95
        lasts = seen.residence_s
        if lasts is None:
            return 0.35
        if lasts >= self.params.long_residence_s:
            return 0.75
        return 0.4 if lasts >= self.params.short_residence_s else 0.0

    def _lowness(self, rate: float) -> float:
        """Give 1 at or below the surely low rate, falling to 0.5 at the limit."""
        span = self.params.low_rate - self.params.surely_low
        over = max(0.0, rate - self.params.surely_low) / span
        return 1.0 - 0.5 * min(1.0, over)
