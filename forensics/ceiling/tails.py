"""B_safe for heavy tails: batches resampled from the length histograms."""

from forensics.capacity.bounds import (
    HORIZON_S,
    RISK,
    Interval,
    Quantity,
    Reckoned,
    resampled_safe_batch,
)
from forensics.capacity.demand import Demand, heavy_tailed
from forensics.ceiling.measure import Lengths, Measured


def tailed(lengths: Lengths | None) -> bool:
    """Tell whether a length is too uneven for the Gaussian of a batch's sum."""
    return lengths is not None and heavy_tailed(lengths.cv, lengths.tail)


def resampled(
    safe: Reckoned, pool: Interval, per_request: Demand, measured: Measured, held: float
) -> Reckoned:
    """Replace the Gaussian B_safe by the smaller of it and the resampled one."""
    sample = _demand_sample(measured)
    if not sample:
        return safe
    scale = per_request.mean / (sum(sample) / len(sample))

    def batch(size: float, mean: float) -> float:
        values = [value * scale * mean / per_request.mean for value in sample]
        return resampled_safe_batch(size, per_request.shared, values, held)

    # Neither sees the far tail well: the smaller of the two is taken.
    value = min(safe.value, batch(pool.value, per_request.mean))
    low = min(safe.low, batch(pool.low, per_request.mean_high))
    high = min(safe.high, batch(pool.high, per_request.mean_low))
    step = (
        f"lengths are heavy-tailed: batches resampled from the histograms, B = {value:,.0f}"
        f" (the Gaussian would give {safe.value:,.0f})"
    )
    inputs = dict(safe.inputs) | {
        "p": Quantity(RISK, "", f"accepted in {HORIZON_S / 3600:g} h"),
    }
    return Reckoned(
        "B_safe",
        value,
        low,
        high,
        "resampled: P(sum of B > N - S_live) <= p W / H",
        inputs,
        (*safe.steps, step),
    )


def _demand_sample(measured: Measured) -> tuple[float, ...]:
    """Return equally likely demands of a running request: prompt + a random age of its decode.

    Both samples are sorted quantiles; they are paired by fixed strides so that they are
    independent. Requests with long outputs run longer and are repeated in proportion.
    """
    if measured.prompt is None or measured.output is None:
        return ()
    prompts, outputs = measured.prompt.sample, measured.output.sample
    if not prompts or not outputs:
        return ()
    total = sum(outputs)
    reach = 0.0
    found: list[float] = []
    count = len(prompts)
    step = total / 1000
    cumulative = 0.0
    for length in outputs:
        cumulative += length
        while reach < cumulative and len(found) < 1000:
            place = len(found)
            age = ((place * 617) % 1000 + 0.5) / 1000
            found.append(prompts[(place * 173) % count] + age * length)
            reach += step
    return tuple(found)
