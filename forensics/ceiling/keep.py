"""C_keep: how many live sessions the pool carries before cached prefixes go before their next use.

Prompt counters do not contain the reuse gap. In order of preference: the histogram of reuse gaps
(``--kv-cache-metrics``; right-censored at the residence time, so it counts only where it ends well
below it), two load levels with different residence times in the history, else no number at all: a
table says what the pool carries for several gaps.
"""

from dataclasses import dataclass
from math import exp

import numpy as np

from forensics.capacity.bounds import Quantity, Reckoned
from forensics.capacity.residence import GAPS_S, Residence, Session, residence, sessions_kept
from forensics.catalog.messages import Message
from forensics.ceiling.bounds import refused_bound, to_bound
from forensics.ceiling.measure import Measured
from forensics.ceiling.records import Bound, GapRow
from forensics.timeline import EngineTimeline

FITS_BELOW = 0.5
"""Gaps count as seen in full when their 90th percentile is below this share of the residence."""
GAP_FACTOR = 2.0
"""A gap fitted from load levels is known within this factor."""
MODEL_ERROR = 0.16
"""Worst error of the characteristic-time model on its 13 reference configurations."""
FIT_ERROR = 0.05
"""Largest error (root mean square, hit-rate points) of a fit over load levels that is believed."""
LEVELS_APART = 2.0
"""Residence times have to differ by this factor to tell two load levels apart."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A reuse gap in seconds with its interval, how it was learnt, and whether it is sharp."""

    seconds: float
    low: float
    high: float
    how: str
    sharp: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of live sessions.

    Attributes:
        bound: C_keep, or why there is none.
        table: live sessions for several gaps, when the gap is unknown.
        residence: survival of a released block; None when rates are unknown.
        gap: the reuse gap; None when unknown.
    """

    bound: Bound
    table: tuple[GapRow, ...]
    residence: Residence | None
    gap: Gap | None


_FORMULA = "(N - shared) / (L + w g / (W + g))"


def kept_sessions(
    timeline: EngineTimeline, measured: Measured, pool_tokens: float | None, shared: float
) -> Kept:
    """Work out C_keep of one engine.

    Args:
        timeline: of the engine.
        measured: its averages.
        pool_tokens: N; None when unknown.
        shared: tokens of prefixes all share (the intercept of usage on running).
    """
    rates = (measured.computed_tps, measured.generated_tps, measured.cached_tps)
    if pool_tokens is None or measured.usage is None or None in rates:
        reason = Message("ceiling.refused.no_residence", {})
        return Kept(refused_bound("C_keep", _FORMULA, reason, "live"), (), None, None)
    computed, generated = measured.computed_tps or 0.0, measured.generated_tps or 0.0
    survived = residence(
        pool_tokens, measured.usage, computed, generated, measured.cached_tps or 0.0
    )
    if measured.prompt is None or measured.output is None:
        reason = Message("ceiling.refused.no_lengths", {})
        return Kept(refused_bound("C_keep", _FORMULA, reason, "live"), (), survived, None)
    private = max(
        measured.prompt.mean - shared, measured.prompt.mean * (1 - (measured.hit_rate or 0.0))
    )
    # At the limit looked for, hits are as good as they get: so is what a turn writes.
    best = measured.best_hit_rate or 0.0
    session = Session(
        private=private + measured.output.mean,
        written=measured.prompt.mean * (1 - best) + measured.output.mean,
        held_s=measured.residence_s or 0.0,
    )
    gap = _gap(timeline, measured, survived)
    if gap is None:
        table = tuple(
            GapRow(seconds, sessions_kept(pool_tokens, shared, session, seconds))
            for seconds in GAPS_S
        )
        reason = Message("ceiling.refused.gap_unknown", {"residence": survived.point_s})
        return Kept(refused_bound("C_keep", _FORMULA, reason, "live"), table, survived, None)
    value = sessions_kept(pool_tokens, shared, session, gap.seconds)
    low = sessions_kept(pool_tokens, shared, session, gap.high) * (1 - MODEL_ERROR)
    high = sessions_kept(pool_tokens, shared, session, gap.low) * (1 + MODEL_ERROR)
    reckoned = Reckoned(
        "C_keep",
        value,
        low,
        high,
        _FORMULA,
        {
            "N": Quantity(pool_tokens, "tokens", "pool"),
            "shared": Quantity(shared, "tokens", "usage at no request"),
            "L": Quantity(session.private, "tokens", "unshared prompt + output"),
            "w": Quantity(
                session.written, "tokens", "computed prompt + output at the best hit rate"
            ),
            "W": Quantity(session.held_s, "s", "time a request holds blocks"),
            "g": Quantity(gap.seconds, "s", gap.how),
        },
        (
            *survived.steps,
            f"({pool_tokens:,.0f} - {shared:,.0f}) / ({session.private:,.0f}"
            f" + {session.written:,.0f} x {gap.seconds:.3g} / ({session.held_s:.3g}"
            f" + {gap.seconds:.3g})) = {value:,.0f} live sessions",
        ),
        "live",
    )
    places = {"w": measured.places.get("hit_rate"), "L": measured.places.get("prompt_len")}
    return Kept(to_bound(reckoned, places), (), survived, gap)


def _gap(timeline: EngineTimeline, measured: Measured, survived: Residence) -> Gap | None:
    return _sampled_gap(timeline, measured, survived) or _fitted_gap(timeline, measured)


def _sampled_gap(timeline: EngineTimeline, measured: Measured, survived: Residence) -> Gap | None:
    histogram = timeline.histograms.get("block_reuse_s")
    if histogram is None:
        return None
    counts = histogram.over(measured.start - timeline.step_s, measured.end)
    if not np.isfinite(counts).all() or counts[-1] < 100:
        return None
    edges = histogram.edges.copy()
    edges[-1] = edges[-2]
    share = np.concatenate(([0.0], counts / counts[-1]))
    bounds = np.concatenate(([0.0], edges))
    middle, most = np.interp([0.5, 0.9], share, bounds)
    if most >= FITS_BELOW * survived.point_s or middle <= 0:
        return None
    # The gap that nearly all sessions keep within is the one to carry, not the median.
    return Gap(float(most), float(middle), float(most) * 1.5, "reuse-gap histogram, p90", True)


def _fitted_gap(timeline: EngineTimeline, measured: Measured) -> Gap | None:
    """Fit ``h(T) = h_0 + h_1 (1 - exp(-T / g))`` over scrapes with different residence times.

    The floor h_0 is what running requests pin: it hits however short a released block survives.
    """
    grid = timeline.grid
    times = grid["time"].to_numpy()
    inside = (times >= measured.start) & (times <= measured.end)
    lived = grid["residence_s"].cast(float).to_numpy()[inside]
    rate = grid["hit_rate"].cast(float).to_numpy()[inside]
    weight = grid["hit_weight"].cast(float).to_numpy()[inside]
    good = np.isfinite(lived) & np.isfinite(rate) & (lived > 0) & (np.nan_to_num(weight) > 0)
    if np.count_nonzero(good) < 24:
        return None
    lived, rate, weight = lived[good], rate[good], weight[good]
    order = np.argsort(lived, kind="stable")
    # Six load levels of equal size: single scrapes are far too noisy.
    levels = [part for part in np.array_split(order, 6) if part.size]
    points = [
        (float(np.median(lived[part])), float(np.average(rate[part], weights=weight[part])))
        for part in levels
    ]
    if points[-1][0] < LEVELS_APART**2 * points[0][0]:
        return None
    # The plateau has to be reached, and clearly left, for a gap to be identified.
    if points[-1][1] - points[0][1] < 0.1 or points[-1][1] < 0.1:
        return None
    rates = np.array([rate for _, rate in points])
    best: tuple[float, float] | None = None
    for seconds in np.geomspace(0.5, 2_000.0, 120):
        rising = np.array([1 - exp(-t / seconds) for t, _ in points])
        design = np.stack([np.ones_like(rising), rising], axis=1)
        (floor, rise), *_ = np.linalg.lstsq(design, rates, rcond=None)
        if floor < 0:
            floor, rise = 0.0, float(rising @ rates / (rising @ rising))
        if rise <= 0 or floor + rise > 1.0:
            continue
        error = float(((floor + rise * rising - rates) ** 2).mean() ** 0.5)
        if best is None or error < best[0]:
            best = (error, float(seconds))
    if best is None or best[0] > FIT_ERROR or best[1] > points[-1][0]:
        return None
    return Gap(
        best[1], best[1] / GAP_FACTOR, best[1] * GAP_FACTOR, "hit rate at several loads", False
    )
