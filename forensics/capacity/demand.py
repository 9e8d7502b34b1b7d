"""What one running request holds of the pool, seen at a random moment, in tokens.

Shared blocks are stored once; a running request costs only its unshared part, which grows while it
decodes. Long outputs are over-represented among running requests: the mean age of a running decode
is ``E[O^2] / 2E[O]``, not half the mean output.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

DEFAULT_CV = 0.5
"""Coefficient of variation of lengths when nothing measured them: a guess, that of the reference
runs the acceptance values come from."""
HEAVY_TAIL_CV = 1.2
HEAVY_TAIL_RATIO = 8.0
"""Above these (coefficient of variation; 99th percentile over mean) the sum of a batch is not
Gaussian, and batches are resampled instead."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Tokens of the pool per running request.

    Attributes:
        mean: m, unshared tokens.
        deviation: s, of one request.
        shared: S_live, distinct shared tokens referenced by running requests together.
        mean_low / mean_high: interval of `mean`.
        steps: the arithmetic.
    """

    mean: float
    deviation: float
    shared: float
    mean_low: float
    mean_high: float
    steps: tuple[str, ...] = ()


def demand_of(
    unshared: float,
    output: float,
    *,
    unshared_cv: float = DEFAULT_CV,
    output_cv: float = DEFAULT_CV,
    shared: float = 0.0,
    relative_error: float = 0.2,
) -> Demand:
    """Work out m and s from mean lengths, outputs taken as lognormal.

    Args:
        unshared: mean unshared prompt tokens (a session's own history included).
        output: mean generated tokens.
        unshared_cv: coefficient of variation of the unshared part.
        output_cv: the same of outputs.
        shared: distinct shared tokens that running requests reference together.
        relative_error: of m; 20 % when it stands on means alone.
    """
    spread = 1 + output_cv**2
    age = output * spread / 2
    mean = unshared + age
    variance = (unshared * unshared_cv) ** 2 + output**2 * spread**3 / 3 - age**2
    deviation = sqrt(max(0.0, variance))
    steps = (
        f"m = {unshared:,.0f} + {output:,.0f} x (1 + {output_cv:g}^2) / 2 = {mean:,.0f} tokens",
        f"s = sqrt({unshared * unshared_cv:,.0f}^2 + {output:,.0f}^2 x ({spread:g}^3/3"
        f" - {spread / 2:g}^2)) = {deviation:,.0f} tokens",
    )
    return Demand(
        mean,
        deviation,
        shared,
        mean * (1 - relative_error),
        mean * (1 + relative_error),
        steps,
    )


def heavy_tailed(cv: float | None, p99_over_mean: float | None) -> bool:
    """Tell whether the Gaussian for the sum of a batch is off."""
    return (cv is not None and cv > HEAVY_TAIL_CV) or (
        p99_over_mean is not None and p99_over_mean > HEAVY_TAIL_RATIO
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A least-squares line y = intercept + slope * x, with standard errors."""

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    points: int


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """Fit a line; None with fewer than three points or without spread in x."""
    count = len(x)
    if count < 3 or count != len(y):
        return None
    mean_x, mean_y = sum(x) / count, sum(y) / count
    spread = sum((value - mean_x) ** 2 for value in x)
    if spread <= 0:
        return None
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    errors = sum((b - intercept - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    residual = errors / max(1, count - 2)
    return Line(
        intercept,
        slope,
        sqrt(residual * (1 / count + mean_x**2 / spread)),
        sqrt(residual / spread),
        count,
    )
