"""Pool, demand and step time → upper bounds on running requests, each with its arithmetic.

Every bound is monotone: a larger pool never lowers one, a longer request never raises one. The
symbols and their check against block-exact runs stand in docs/ceiling.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import hypot, inf, sqrt

from forensics.capacity.demand import Demand

RISK = 0.05
"""Accepted probability of any exhaustion within the horizon."""
HORIZON_S = 3600.0
"""The horizon: an hour, made of horizon / residence independent populations."""
_LARGEST_BATCH, _DRAWS, _SEED = 2_000, 8_000_000, 20_261_129


GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Quantity:
    """One input of a formula."""

    value: float | str
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Reckoned:
    """A bound: value with interval, formula in the symbols of `inputs`, arithmetic in `steps`."""

    name: str
    value: float
    low: float
    high: float
    formula: str
    inputs: Mapping[str, Quantity] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    applies_to: str = "running"


@dataclass(frozen=True, slots=True)
class Interval:
    """A quantity with its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Interval":
        """Give a quantity without error."""
        return cls(value, value, value)

    @classmethod
    def within(cls, value: float, relative: float) -> "Interval":
        """Give a quantity with a relative error."""
        return cls(value, value * (1 - relative), value * (1 + relative))


def corners(function: Callable[..., float], *inputs: Interval) -> tuple[float, float]:
    """Evaluate at all corner values of the inputs; the least and the largest result."""
    results = [function(*corner) for corner in product(*((i.low, i.high) for i in inputs))]
    return min(results), max(results)


def excursion_quantile(
    residence_s: float, risk: float = RISK, horizon_s: float = HORIZON_S
) -> float:
    """Return z: the normal quantile that a batch may not pass in any population of the horizon."""
    from statistics import NormalDist

    share = min(0.5, max(1e-9, risk * residence_s / horizon_s))
    return NormalDist().inv_cdf(1 - share)


def exhaustion(pool: float, shared: float, mean: float) -> float:
    """Return B_exh: the batch whose mean demand is the whole pool."""
    return max(0.0, pool - shared) / mean if mean > 0 else inf


def safe_batch(pool: float, shared: float, mean: float, deviation: float, z: float) -> float:
    """Return B_safe: the B with ``B m + z s sqrt(B) = N - S``."""
    room = pool - shared
    if room <= 0 or mean <= 0:
        return 0.0 if room <= 0 else inf
    # The root written so that nothing cancels where the spread is far larger than the mean.
    spread = z * deviation
    # hypot and a product, where squares of absurd lengths would overflow.
    root = 2 * room / (spread + hypot(spread, 2 * sqrt(mean * room)))
    return root * root


def resampled_safe_batch(
    pool: float,
    shared: float,
    sample: Sequence[float],
    residence_s: float,
    *,
    risk: float = RISK,
    horizon_s: float = HORIZON_S,
) -> float:
    """Return B_safe from the empirical demand: for heavy tails, where a Gaussian is off.

    The largest B whose resampled demand passes `pool - shared` with a probability of at most
    ``risk x residence / horizon``; found by bisection with fixed random numbers, so that the
    result is the same each time and falls with every longer request.

    Args:
        pool: N, tokens.
        shared: S_live, tokens.
        sample: unshared tokens of single running requests.
        residence_s: W, how long a request holds its blocks.
        risk: accepted probability of any excursion in the horizon.
        horizon_s: the horizon.
    """
    import numpy as np

    room = pool - shared
    values = np.sort(np.asarray(sample, dtype=np.float64))
    if room <= 0 or values.size == 0 or values[-1] <= 0:
        return 0.0
    most = int(min(_LARGEST_BATCH, 1.5 * room / max(values.mean(), 1.0) + 10))
    rounds = max(2_000, min(20_000, _DRAWS // most))
    # A share that less than four of the resampled batches pass is not seen by resampling.
    quantile = 1 - max(4 / rounds, min(0.5, risk * residence_s / horizon_s))
    picks = np.random.default_rng(_SEED).random((rounds, most))
    sums = np.cumsum(values[(picks * values.size).astype(np.int64)], axis=1)
    limit = np.quantile(sums, quantile, axis=0)
    return float(np.searchsorted(limit, room, side="right"))


def safe_bound(
    pool: Interval,
    pool_source: str,
    demand: Demand,
    residence_s: float,
    demand_source: str,
    *,
    residence_source: str = "output x step time",
    risk: float = RISK,
    horizon_s: float = HORIZON_S,
) -> tuple[Reckoned, Reckoned]:
    """Return B_safe and B_exh with their intervals."""
    z = excursion_quantile(residence_s, risk, horizon_s)
    mean = Interval(demand.mean, demand.mean_low, demand.mean_high)
    shared = Interval.exact(demand.shared)

    def safe(n: float, s: float, m: float) -> float:
        variation = demand.deviation / demand.mean if demand.mean > 0 else 0.0
        return safe_batch(n, s, m, variation * m, z)

    value = safe_batch(pool.value, demand.shared, demand.mean, demand.deviation, z)
    low, high = corners(safe, pool, shared, mean)
    inputs = {
        "N": Quantity(pool.value, "tokens", pool_source),
        "S_live": Quantity(demand.shared, "tokens", demand_source),
        "m": Quantity(demand.mean, "tokens/request", demand_source),
        "s": Quantity(demand.deviation, "tokens", demand_source),
        "z": Quantity(z, "", f"normal quantile, p = {risk:g} in {horizon_s / 3600:g} h"),
        "W": Quantity(residence_s, "s", residence_source),
    }
    room = pool.value - demand.shared
    steps = (
        *demand.steps,
        f"z = quantile(1 - {risk:g} x {residence_s:.3g} s / {horizon_s:,.0f} s) = {z:.2f}",
        f"B m + z s sqrt(B) = N - S: B x {demand.mean:,.0f} + {z:.2f} x {demand.deviation:,.0f}"
        f" x sqrt(B) = {pool.value:,.0f} - {demand.shared:,.0f} = {room:,.0f}"
        f" -> B = {value:,.0f}",
    )
    bound = Reckoned(
        "B_safe",
        value,
        low,
        high,
        "((-z s + sqrt(z^2 s^2 + 4 m (N - S_live))) / (2 m))^2",
        inputs,
        steps,
    )
    most = exhaustion(pool.value, demand.shared, demand.mean)
    low, high = corners(exhaustion, pool, shared, mean)
    end = Reckoned(
        "B_exh",
        most,
        low,
        high,
        "(N - S_live) / m",
        {name: inputs[name] for name in ("N", "S_live", "m")},
        (f"({pool.value:,.0f} - {demand.shared:,.0f}) / {demand.mean:,.0f} = {most:,.0f}",),
    )
    return bound, end


def formula_bound(
    pool: Interval, pool_source: str, length: Interval, reserve: float, sources: tuple[str, str]
) -> Reckoned:
    """Return the field's formula, (N - reserve) / L_avg, for comparison.

    Args:
        pool: N, tokens.
        pool_source: where it is from.
        length: L_avg, tokens a request holds when it ends.
        reserve: tokens kept for cached prefixes.
        sources: where length and reserve are from.
    """

    def formula(n: float, average: float) -> float:
        return max(0.0, n - reserve) / average

    value = formula(pool.value, length.value)
    low, high = corners(formula, pool, length)
    return Reckoned(
        "formula",
        value,
        low,
        high,
        "(N - reserve) / L_avg",
        {
            "N": Quantity(pool.value, "tokens", pool_source),
            "reserve": Quantity(reserve, "tokens", sources[1]),
            "L_avg": Quantity(length.value, "tokens", sources[0]),
        },
        (f"({pool.value:,.0f} - {reserve:,.0f}) / {length.value:,.0f} = {value:,.0f}",),
    )


def formula_from_memory(
    free_bytes: float, kept_bytes: float, tokens: float, bytes_per_token: float
) -> float:
    """Return the field's formula on bytes: (free - kept) / (tokens x bytes per token).

    With 56 GB free, 9 GB kept, Llama-3-8B (128 KiB per token) and 2,048 tokens it is 175 in decimal
    GB over MiB and 188 in GiB; the often-quoted 47 is wrong by exactly 4.

    >>> GiB = 2**30
    >>> int(formula_from_memory(56 * GiB, 9 * GiB, 2048, 131072))
    188
    """
    return max(0.0, free_bytes - kept_bytes) / (tokens * bytes_per_token)


def memory_bound(
    free: Interval,
    kept: Interval,
    length: Interval,
    layout_bytes: tuple[float, str],
    sources: tuple[str, str, str],
) -> Reckoned:
    """Return the field's formula on bytes: what is free beside what a request's tokens take.

    Args:
        free: M_free, GiB of one GPU that the server may use.
        kept: overhead, GiB of it that is not the pool.
        length: L_avg, tokens of a request.
        layout_bytes: KV bytes per token on one GPU, and the arithmetic behind them.
        sources: where free, kept and length are from.
    """
    per_token, arithmetic = layout_bytes

    def formula(have: float, taken: float, tokens: float) -> float:
        return formula_from_memory(have * GIB, taken * GIB, tokens, per_token)

    value = formula(free.value, kept.value, length.value)
    low, high = corners(formula, free, kept, length)
    return Reckoned(
        "formula_bytes",
        value,
        low,
        high,
        "(M_free - overhead) / (L_avg x KV_bytes_per_token)",
        {
            "M_free": Quantity(free.value, "GiB", sources[0]),
            "overhead": Quantity(kept.value, "GiB", sources[1]),
            "L_avg": Quantity(length.value, "tokens", sources[2]),
            "KV_bytes_per_token": Quantity(per_token, "B", "model geometry"),
        },
        (
            f"KV_bytes_per_token = {arithmetic}",
            f"({free.value:,.2f} GiB - {kept.value:,.2f} GiB) / ({length.value:,.0f} x "
            f"{per_token:,.0f} B) = {value:,.0f}",
        ),
    )
