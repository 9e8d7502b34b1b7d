"""Sessions in a plan: how many live ones keep their hits, and what lost hits do to a step."""

from dataclasses import replace

from forensics.capacity.bounds import Interval, Quantity, Reckoned
from forensics.capacity.pool import Pool
from forensics.capacity.residence import GAPS_S
from forensics.capacity.reuse_model import Cliff, StepCost, Workload, cliff, load_point
from forensics.capacity.wanted import Wanted

MODEL_ERROR = 0.16
"""Worst error of the characteristic-time model on its 13 reference configurations."""
KEEP_SHARE = 0.9
"""C_keep: hits at 90 % of their plateau."""


def with_lost_hits(
    bound: Reckoned, wanted: Wanted, pool: Pool, workload: Workload, cost: StepCost
) -> Reckoned:
    """Lower B_slo to where the target holds with the hits that are left at that load.

    The bound alone takes histories as hit. With known think times the model tells how many are
    lost as sessions grow with the batch, and what computing them again does to the step.
    """
    target = wanted.slo_itl_s
    if bound.name != "B_slo" or target is None or wanted.think_s is None or workload.turns <= 1:
        return bound
    low, high = 0.0, bound.value
    if load_point(pool.tokens, workload, cost, max(high, 0.01)).step_s <= target:
        return bound
    for _ in range(40):
        middle = (low + high) / 2
        if load_point(pool.tokens, workload, cost, max(middle, 0.01)).step_s <= target:
            low = middle
        else:
            high = middle
    point = load_point(pool.tokens, workload, cost, max(low, 0.01))
    share = low / bound.value if bound.value else 0.0
    step = (
        f"with the hits left at that load ({point.hit_rate:.2f}) a step takes"
        f" {point.step_s * 1e3:.1f} ms at B = {low:,.0f}"
    )
    return replace(
        bound,
        value=low,
        low=bound.low * share,
        high=bound.high * share,
        steps=(*bound.steps, step),
    )


def sessions_of(
    wanted: Wanted, pool: Pool, workload: Workload, cost: StepCost | None
) -> tuple[Cliff | None, Interval | None, tuple[tuple[float, float], ...]]:
    """Return the load at which hits fall, C_keep, and the table where the gap is not known."""
    if cost is None or workload.turns <= 1:
        return None, None, ()

    def kept(tokens: float, traffic: Workload) -> Cliff:
        return cliff(tokens, traffic, cost, KEEP_SHARE)

    if wanted.think_s is None:
        table = tuple(
            (gap, kept(pool.tokens, replace(workload, think_s=gap)).point.clients) for gap in GAPS_S
        )
        return None, None, table
    found = kept(pool.tokens, workload)
    if found.exhaustion:
        return found, None, ()
    low = kept(pool.low, workload).point.clients * (1 - MODEL_ERROR)
    high = kept(pool.high, workload).point.clients * (1 + MODEL_ERROR)
    return found, Interval(found.point.clients, low, high), ()


def session_bound(
    pool: Pool, keep: Cliff | None, sessions: Interval | None
) -> tuple[Reckoned, ...]:
    """Return C_keep as a bound; nothing where it is not identified."""
    if keep is None or sessions is None:
        return ()
    point = keep.point
    return (
        Reckoned(
            "C_keep",
            sessions.value,
            sessions.low,
            sessions.high,
            "C = X (W + Z) where the hit rate is 90 % of its plateau",
            {
                "N": Quantity(pool.tokens, "tokens", pool.source),
                "X": Quantity(point.requests_per_s, "1/s", "characteristic-time model"),
                "T": Quantity(point.residence_s, "s", "characteristic-time model"),
            },
            (
                f"at {point.batch:,.0f} running a released block survives"
                f" {point.residence_s:,.0f} s and the hit rate is {point.hit_rate:.2f}",
                f"C = {point.requests_per_s:.3g}/s x (W + Z) = {sessions.value:,.0f} live sessions",
            ),
            "live",
        ),
    )
