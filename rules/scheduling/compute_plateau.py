"""SCH302 compute-plateau: throughput is flat against concurrency; only latency grows.

What it detects
    More running requests that bring no more tokens per second, with the pool far from full.

Why it matters
    The GPU is at its limit. A larger batch, or more pool, buys nothing but latency.

Evidence it needs
    Running requests and generated tokens over a span in which concurrency varied, and the latency
    of the requests: between tokens, else of decoding, else end to end.

How it decides
    Points at high concurrency (0.8 of its 95th percentile or more) are compared with points at
    about half of it. Throughput grew by less than a tenth, surely by less than a fifth (95 %
    interval), while concurrency grew at least 1.5-fold, inter-token latency grew with it, and
    prompts, answers and hit rate are the same in both. A linear roofline says the same: at
    ``9 x B_half`` 90 % of the plateau is reached.

When it is silent
    Concurrency hardly varied, the pool was nearly full, throughput still grows, tokens did not come
    more slowly (a snapshot of running varies by itself), or the traffic at high concurrency is
    another one.

False positives
    A GPU slowed down by heat or by a neighbour while load rose.

What to do
    Cap the batch where throughput is 90 % of the plateau, shed beyond it, add replicas.

Versions
    All.

References
    Batch-ceiling reference, section 6 (throughput plateau); observed.md 3 (flat from 64 on).
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.catalog.messages import Message
from rules.actions import admission_limit, lower_batch
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity

_SLOWED = ("itl_s", "decode_s", "e2e_s")


@dataclass(frozen=True, slots=True)
class ComputePlateauParams(Params):
    """Thresholds.

    Attributes:
        least_running: high concurrency, requests; below it the batch is no lever (guess).
        least_points: points in each of the two groups (guess: eight make a segment elsewhere).
        least_ratio: growth of concurrency between the groups (batch-ceiling.md, section 2, asks
            for the same variation).
        gain: growth of throughput that still counts as flat; 0.1 is the 90 % mark of section 6.
        sure_gain: upper 95 % bound of that growth (twice the mark; guess).
        room: usage that leaves the pool out of it, ratio.
        same: relative difference up to which lengths count as equal (guess).
        same_rate: hit-rate points; 0.05 is the noise limit of diagnosis.md.
        latency_share: latency grew by at least this share of what concurrency did
            (by Little's law it grows by all of it where throughput is flat).
    """

    least_running: float = 8.0
    least_points: int = 8
    least_ratio: float = 1.5
    gain: float = 0.1
    sure_gain: float = 0.2
    room: float = 0.9
    same: float = 0.25
    same_rate: float = 0.05
    latency_share: float = 0.5


class ComputePlateau:
    """The rule. See the module docstring."""

    id = "SCH302"
    name = "compute-plateau"
    title = "Throughput is flat against concurrency, only latency grows"
    severity = Severity.WARNING
    needs = ("running", "generation_tps", "kv_usage", "itl_s|decode_s|e2e_s")
    scope = "window"

    def __init__(self, params: ComputePlateauParams | None = None) -> None:
        self.params = params or ComputePlateauParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Compare high concurrency with about half of it."""
        grid = case.timeline.grid.filter(
            (pl.col("running") > 0) & pl.col("generation_tps").is_not_null()
        )
        if grid.height < 2 * self.params.least_points:
            return None
        running = grid["running"].to_numpy()
        top = float(np.quantile(running, 0.95))
        if top < self.params.least_running:
            return None
        high = grid.filter(pl.Series(running >= 0.8 * top))
        half = grid.filter(pl.Series((running >= 0.35 * top) & (running <= 0.65 * top)))
        if min(high.height, half.height) < self.params.least_points:
            return None
        if (_peak(high, "kv_usage") or 0.0) >= self.params.room or not self._same(half, high):
            return None
        ratio = _mean(high, "running") / _mean(half, "running")
        gain, error = _gain(half, high)
        flat = -self.params.sure_gain <= gain <= self.params.gain
        if (
            not flat
            or gain + 1.96 * error > self.params.sure_gain
            or ratio < self.params.least_ratio
        ):
            return None
        # A snapshot of running varies around a steady load; only real concurrency slows requests.
        measure = next((name for name in _SLOWED if _ratio(half, high, name) is not None), None)
        slower = _ratio(half, high, measure) if measure is not None else None
        if measure is None or slower is None:
            return None
        if slower - 1.0 < self.params.latency_share * (ratio - 1.0):
            return None
        first = high["time"][0]
        shown = [
            self._shown(case, half, high, "running", "requests", first),
            self._shown(case, half, high, "generation_tps", "tokens/s", first),
        ]
        shown.append(self._shown(case, half, high, measure, "s", first))
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.85,
            severity=self.severity,
            summary=Message(
                "SCH302.summary",
                {
                    "engine": case.timeline.engine,
                    "low": _mean(half, "running"),
                    "high": _mean(high, "running"),
                    "gain": gain,
                    "usage": _peak(high, "kv_usage"),
                },
            ),
            onset=(float(half["time"][0]), float(first)) if half["time"][0] < first
            else (float(first), float(first)),
            for_=(*shown, *compare(case, "usage_max")),
            against=compare(case, "preemptions"),
            actions=(
                lower_batch(case, 1),
                admission_limit(case, 2),
                Action(Message("SCH302.replicas"), Message("SCH302.replicas_effect"), None, 3),
            ),
        )  # fmt: skip

    def _same(self, half: pl.DataFrame, high: pl.DataFrame) -> bool:
        """Tell whether the traffic is the same in both groups, as far as it was observed."""
        for amount in ("prompt_tokens", "generation_tokens"):
            low, top = _per_request(half, amount), _per_request(high, amount)
            if low is not None and top is not None and abs(top - low) > self.params.same * low:
                return False
        if min(half["hit_rate"].count(), high["hit_rate"].count()) == 0:
            return True
        return abs(_mean(high, "hit_rate") - _mean(half, "hit_rate")) <= self.params.same_rate

    def _shown(
        self, case: Case, half: pl.DataFrame, high: pl.DataFrame, name: str, unit: str, at: float
    ) -> Exhibit:
        return Exhibit(
            name, _mean(half, name), _mean(high, name), unit, case.timeline.place(name, at)
        )


def _mean(grid: pl.DataFrame, name: str) -> float:
    return float(grid[name].drop_nulls().to_numpy().mean())


def _per_request(grid: pl.DataFrame, amount: str) -> float | None:
    """Give tokens per finished request over a group; None when either was not counted."""
    requests, tokens = grid["finished"].drop_nulls(), grid[amount].drop_nulls()
    if not requests.len() or not tokens.len() or float(requests.sum()) <= 0:
        return None
    return float(tokens.sum()) / float(requests.sum())


def _peak(grid: pl.DataFrame, name: str) -> float | None:
    values = grid[name].drop_nulls().to_numpy()
    return float(values.max()) if values.size else None


def _ratio(half: pl.DataFrame, high: pl.DataFrame, name: str) -> float | None:
    if half[name].null_count() == half.height or high[name].null_count() == high.height:
        return None
    low = _mean(half, name)
    return _mean(high, name) / low if low > 0 else None


def _gain(half: pl.DataFrame, high: pl.DataFrame) -> tuple[float, float]:
    """Give the relative growth of throughput from half to high and its standard error."""
    low = half["generation_tps"].drop_nulls().to_numpy()
    top = high["generation_tps"].drop_nulls().to_numpy()
    base = float(low.mean())
    if base <= 0:
        return (float("inf"), 0.0)
    error = np.sqrt(low.var() / low.size + top.var() / top.size)
    return (float(top.mean()) / base - 1.0, float(error) / base)
