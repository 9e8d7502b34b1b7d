"""The exact split: how far the attainable hit rate fell, from what the requests contained."""

import math
from dataclasses import dataclass

from forensics.attribution.contents import Contents
from forensics.attribution.records import Part
from forensics.episodes import Episode

# The log must show at least this share of the requests that the counters saw.
_LEAST_COVERAGE = 0.5
# Prompts cut by a log limit are shorter than those the server counted.
_WHOLE = 0.8


@dataclass(frozen=True, slots=True)
class ExactSplit:
    """The attainable rate before and after, and the error of its fall.

    Attributes:
        before / after: hit rate of an infinite cache in the two windows of the episode.
        error: standard error of the difference.
        fall: how much the rate itself fell.
    """

    before: float
    after: float
    error: float
    fall: float

    @property
    def log_odds(self) -> float:
        """Log-odds towards capacity that the split amounts to."""
        share = self._diversity(self.fall) / self.fall if self.fall > 0 else 0.5
        return math.log((1.0 - share + 0.01) / (share + 0.01))

    def share(self, rest: float) -> tuple[Part, Part]:
        """Give the diversity and the capacity part of what is to be split."""
        middle = self._diversity(rest)
        low = min(rest, max(0.0, self.before - self.after - 2 * self.error))
        high = min(rest, max(0.0, self.before - self.after + 2 * self.error))
        return (
            Part("diversity", middle, low, high),
            Part("capacity", rest - middle, rest - high, rest - low),
        )

    def _diversity(self, rest: float) -> float:
        return min(rest, max(0.0, self.before - self.after))


def exact_split(
    contents: Contents, episode: Episode, prompt_len: float | None = None
) -> ExactSplit | None:
    """Compare what could have been hit in the two windows; None where the log shows too little.

    Args:
        contents: the logged requests played against an infinite cache.
        episode: the fall.
        prompt_len: mean prompt tokens that the server counted, to notice cut prompts.
    """
    before = contents.attainable(episode.baseline)
    after = contents.attainable(episode.after)
    if before is None or after is None:
        return None
    for (_, _, logged), counted in (
        (before, episode.requests_before),
        (after, episode.requests_after),
    ):
        if counted is not None and logged < _LEAST_COVERAGE * counted:
            return None
    known = contents.unit == "tokens" and prompt_len is not None
    if known and float(contents.lengths.mean()) < _WHOLE * (prompt_len or 0.0):
        return None
    # A log that begins in mid-life has not seen what was cached before; what was hit was there.
    attainable = max(before[0], episode.before)
    return ExactSplit(
        attainable, max(after[0], episode.level), math.hypot(before[1], after[1]),
        episode.before - episode.level,
    )  # fmt: skip
