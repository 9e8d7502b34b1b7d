"""PC106 sub-block-prefix: the shared prefix is shorter than one cache block, so it can never hit.

What it detects
    A server with caching on that looks up every prompt and never hits, because prompts, or what
    they share, do not fill one block.

Why it matters
    Only whole blocks are cached. A hit rate of zero is then arithmetic, not an incident, and
    neither a larger pool nor other traffic control changes it.

Evidence it needs
    Lookups and hits, the length of prompts (histogram or mean), the block size.

How it decides
    Hits are zero over at least 30 requests. With nine prompts in ten no longer than a block the
    cause is certain: at most ``num_tokens - 1`` tokens of a prompt can hit, in whole blocks. With
    an unusually large block (hybrid models: hundreds of tokens) and a mean prompt below two blocks
    it is likely. When the block size was not stated, 16 tokens are taken: no release has a smaller
    default, so prompts of at most 16 tokens never hit.

When it is silent
    Anything was hit, caching is off, or prompts are long enough for whole blocks.

False positives
    Short prompts that share nothing either: then a smaller block brings no hits.

What to do
    Nothing on the pool. Choose a smaller block size where the backend allows it, or put shared text
    in front; else ignore the hit rate and let the batch grow.

Versions
    Blocks of 16 tokens by default on GPUs, 64 for some MLA backends, up to 128 on CPU, hundreds to
    thousands for models with Mamba layers. From 0.26 ``prefix_match_unit`` can match finer.

References
    Metrics reference 3.1 ("Prompts shorter than one block always miss"); log reference 4 (block
    size changed by the backend).
"""

from dataclasses import dataclass

import numpy as np

from forensics.catalog.messages import Message
from rules.actions import potential
from rules.exhibits import compare, stated
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity


@dataclass(frozen=True, slots=True)
class SubBlockPrefixParams(Params):
    """Thresholds.

    Attributes:
        least_requests: lookups of fewer requests prove nothing; 30 is a guess.
        zero_rate: a hit rate below this counts as never hitting, ratio (one block in a thousand).
        short_share: share of prompts no longer than a block that makes it certain (guess).
        default_block: tokens; smallest default block size of any release.
        block_unknown: factor on the weight when the block size was not stated (guess).
        large_block: tokens from which a block is large against usual shared prefixes (guess; MLA
            backends use 64, plain attention 16).
    """

    least_requests: float = 30.0
    zero_rate: float = 0.001
    short_share: float = 0.9
    default_block: int = 16
    block_unknown: float = 0.9
    large_block: int = 64


class SubBlockPrefix:
    """The rule. See the module docstring."""

    id = "PC106"
    name = "sub-block-prefix"
    title = "The shared prefix is shorter than one cache block"
    severity = Severity.WARNING
    needs = ("hit_rate|counter_hit_rate", "prompt_len|prompt_tokens")
    scope = "window"

    def __init__(self, params: SubBlockPrefixParams | None = None) -> None:
        self.params = params or SubBlockPrefixParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge the whole window."""
        seen = case.after
        rate = seen.hit_rate if seen.hit_rate is not None else seen.counter_rate
        if case.epoch.prefix_caching is False or rate is None or rate > self.params.zero_rate:
            return None
        if seen.prompt_len is None or (seen.requests or 0.0) < self.params.least_requests:
            return None
        block = case.epoch.pool.block_size or self.params.default_block
        surely, perhaps = _share_within(case, block)
        weight = self._weight(seen.prompt_len, surely, perhaps, block)
        weight *= 1.0 if case.epoch.pool.block_size is not None else self.params.block_unknown
        if weight == 0.0:
            return None
        shown: list[Exhibit] = [*compare(case, "prompt_len", note=Message("note.below_block"))]
        if surely is not None:
            place = case.timeline.place("prompt_len", case.window[1])
            shown.append(Exhibit("prompts_within_a_block", None, surely, "ratio", place))
        shown.append(stated("block_size", float(block), "tokens", case, "pool"))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity,
            summary=Message(
                "PC106.summary",
                {"engine": case.timeline.engine, "prompt": seen.prompt_len, "block": block},
            ),
            onset=(case.window[0], case.window[0]),
            for_=(*shown, *compare(case, "hit_rate", "counter_rate")),
            actions=(
                Action(
                    Message("PC106.smaller", {"block": block}),
                    Message("PC106.smaller_effect"),
                    "--block-size 16" if block > self.params.default_block else None,
                ),
                Action(Message("PC106.ignore"), Message("PC106.ignore_effect"), None, 2),
            ),
            would_decide=None if weight >= 0.9 else potential(case),
            missing=() if case.epoch.pool.block_size is not None else ("block_size",),
        )

    def _weight(
        self, mean: float, surely: float | None, perhaps: float | None, block: int
    ) -> float:
        """Give the strength for a mean prompt, the share of short prompts, and the block size."""
        if surely is not None and surely >= self.params.short_share:
            return 0.95
        if mean <= block:
            # A mean below a block leaves room for long prompts only if most are short.
            return 0.75 if perhaps is None or perhaps >= self.params.short_share else 0.0
        if block >= self.params.large_block and mean <= 2 * block:
            return 0.45
        return 0.0


def _share_within(case: Case, block: int) -> tuple[float | None, float | None]:
    """Give the share of prompts surely, and perhaps, no longer than a block.

    None without a histogram.
    """
    histogram = case.timeline.histograms.get("prompt_len")
    if histogram is None:
        return (None, None)
    counts = histogram.over(*case.window)
    if not counts.size or counts[-1] <= 0:
        return (None, None)
    below = np.flatnonzero(histogram.edges <= block)
    above = np.flatnonzero(histogram.edges >= block)
    surely = float(counts[below[-1]] / counts[-1]) if below.size else 0.0
    return (surely, float(counts[above[0]] / counts[-1]) if above.size else 1.0)
