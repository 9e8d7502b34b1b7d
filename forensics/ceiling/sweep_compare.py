"""Rows of a sweep → the break of the hit rate, the peak of throughput, and what holds the target.

The two are different ceilings and are located separately: hits break where live prefixes outgrow
the pool; throughput peaks where a step costs as much as it serves. Each lies *between* settings,
so each is given as an interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from forensics.catalog.messages import Message
from forensics.ceiling.records import Sweep, SweepRow

BREAK_SHARE = 0.75
"""Hits have broken where they are below this share of the best seen at smaller settings: the level
the reference table of the ceiling model calls the cliff."""
BREAK_POINTS = 0.05
"""… and by at least this much: smaller falls are noise (falls under 0.05 cannot be attributed)."""
PEAK_TOLERANCE = 0.03
"""Settings within this of the highest throughput are at the peak: repeated runs differ so much."""
PLATEAU_TOLERANCE = 0.10
"""Throughput is flat where it is within a tenth of its highest (9 x B_half has 90 %)."""
POOL_FREE = 0.8
"""Below this usage the pool is not what bounds a plateau."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Latency targets in seconds; None for none. `percentile` of the first token: 99 or 50."""

    ttft_s: float | None = None
    percentile: int = 99


def compare(
    rows: Iterable[SweepRow], setting_name: str, targets: Targets | None = None
) -> Sweep | None:
    """Compare settings; None with fewer than two.

    Args:
        rows: any order; rows of one setting are averaged.
        setting_name: what was varied, as its flag or in words.
        targets: latency targets.
    """
    ordered = _merged(rows)
    if len(ordered) < 2:
        return None
    notes: list[Message] = []
    hits = _hit_break(ordered, notes)
    peak = _throughput_peak(ordered, notes)
    if hits is not None and peak is not None and hits[1] <= peak[1]:
        notes.append(Message("ceiling.sweep.differ", {}))
    if hits is not None:
        _trade(ordered, hits, notes)
    _plateau(ordered, notes)
    preempting = next((row.setting for row in ordered if (row.preemptions or 0) > 0), None)
    if preempting is not None:
        notes.append(Message("ceiling.sweep.preempting", {"setting": preempting}))
    return Sweep(
        setting_name=setting_name,
        rows=ordered,
        hit_break=hits,
        throughput_peak=peak,
        largest_within_slo=_within(ordered, targets, notes),
        notes=tuple(notes),
    )


def _merged(rows: Iterable[SweepRow]) -> tuple[SweepRow, ...]:
    by_setting: dict[float, list[SweepRow]] = {}
    for row in rows:
        by_setting.setdefault(row.setting, []).append(row)
    return tuple(_mean_row(by_setting[setting]) for setting in sorted(by_setting))


def _mean_row(rows: list[SweepRow]) -> SweepRow:
    def mean(name: str) -> float | None:
        values = [value for row in rows if (value := getattr(row, name)) is not None]
        return sum(values) / len(values) if values else None

    return SweepRow(
        setting=rows[0].setting,
        hit_rate=mean("hit_rate"),
        ttft_p50_s=mean("ttft_p50_s"),
        ttft_p99_s=mean("ttft_p99_s"),
        throughput_tok_s=mean("throughput_tok_s"),
        preemptions=mean("preemptions"),
        kv_usage=mean("kv_usage"),
        requests=mean("requests"),
    )


def _hit_break(rows: Sequence[SweepRow], notes: list[Message]) -> tuple[float, float] | None:
    known = [(row.setting, row.hit_rate) for row in rows if row.hit_rate is not None]
    if len(known) < 2:
        notes.append(Message("ceiling.sweep.hit_break_unknown", {}))
        return None
    best, last = known[0][1], known[0][0]
    for setting, rate in known[1:]:
        if rate < BREAK_SHARE * best and best - rate >= BREAK_POINTS:
            notes.append(Message("ceiling.sweep.hit_break", {"below": last, "above": setting}))
            return last, setting
        best, last = max(best, rate), setting
    notes.append(Message("ceiling.sweep.no_hit_break", {}))
    return None


def _throughput_peak(rows: Sequence[SweepRow], notes: list[Message]) -> tuple[float, float] | None:
    known = [(r.setting, r.throughput_tok_s) for r in rows if r.throughput_tok_s is not None]
    if len(known) < 2:
        return None
    most = max(rate for _, rate in known)
    at_peak = [setting for setting, rate in known if rate >= (1 - PEAK_TOLERANCE) * most]
    low, high = min(at_peak), max(at_peak)
    if low == high:
        notes.append(Message("ceiling.sweep.peak", {"setting": low, "rate": most}))
    else:
        values = {"low": low, "high": high, "rate": most}
        notes.append(Message("ceiling.sweep.peak_range", values))
    return low, high


def _trade(rows: Sequence[SweepRow], hits: tuple[float, float], notes: list[Message]) -> None:
    below, above = (next(row for row in rows if row.setting == setting) for setting in hits)
    if below.throughput_tok_s and above.throughput_tok_s and below.ttft_p50_s and above.ttft_p50_s:
        notes.append(
            Message(
                "ceiling.sweep.trade",
                {
                    "below": below.setting,
                    "above": above.setting,
                    "throughput": above.throughput_tok_s / below.throughput_tok_s - 1,
                    "ttft": above.ttft_p50_s / below.ttft_p50_s - 1,
                },
            )
        )


def _plateau(rows: Sequence[SweepRow], notes: list[Message]) -> None:
    known = [row for row in rows if row.throughput_tok_s is not None]
    if len(known) < 3:
        return
    most = max(row.throughput_tok_s or 0.0 for row in known)
    flat: list[SweepRow] = []
    for row in reversed(known):
        if (row.throughput_tok_s or 0.0) < (1 - PLATEAU_TOLERANCE) * most:
            break
        flat.insert(0, row)
    if len(flat) < 2:
        return
    ends = {"low": flat[0].setting, "high": flat[-1].setting}
    usages = [row.kv_usage for row in flat if row.kv_usage is not None]
    if not usages:
        notes.append(Message("ceiling.sweep.plateau_unknown_usage", ends))
    elif max(usages) < POOL_FREE:
        notes.append(Message("ceiling.sweep.plateau", ends | {"usage": max(usages)}))
    else:
        return
    before = [row for row in known if row.setting < flat[0].setting]
    if before and before[-1].throughput_tok_s:
        rate = before[-1].throughput_tok_s
        values = {"setting": before[-1].setting, "rate": rate, "share": rate / most}
        notes.append(Message("ceiling.sweep.limit_costs", values))


def _within(
    rows: Sequence[SweepRow], targets: Targets | None, notes: list[Message]
) -> float | None:
    if targets is None or targets.ttft_s is None:
        return None
    name = "ttft_p99_s" if targets.percentile >= 99 else "ttft_p50_s"
    known = [(row.setting, getattr(row, name)) for row in rows]
    measured = [(setting, value) for setting, value in known if value is not None]
    if not measured:
        return None
    # A setting above one that misses the target does not count, even if it was luckier.
    found = None
    for setting, value in measured:
        if value > targets.ttft_s:
            break
        found = setting
    if found is None:
        notes.append(Message("ceiling.sweep.none_within_slo", {}))
    else:
        notes.append(Message("ceiling.sweep.within_slo", {"setting": found}))
    return found
