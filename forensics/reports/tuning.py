"""Analysis → the levels that tell this deployment's good days from its bad ones.

A level lies between what was usual before the onset and what was seen after it: halfway for rates,
at the geometric mean for times, which differ by factors. Without an incident there is only the
usual, and a level keeps a margin from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from forensics.analysis import Analysis, EngineTracks, EpochView
from forensics.catalog.metrics_catalog import newest_release
from forensics.catalog.versions import Generation, Version, default_generation, parse_version
from forensics.errors import InputError
from forensics.reports import selection

# Five times a usual scrape interval of 15 s is the shortest range that survives a lost scrape.
_WINDOW_STEPS = 8
_HOLD_STEPS = 3
_HIT_FALL = 0.05  # diagnosis.md 0: smaller falls of the hit rate are noise
_FACTOR = 2.0  # a time is held to have changed when it doubled; a guess, on the careful side
_HEALTHY_FACTOR = 3.0  # margin above the highest usual time when no incident was seen; a guess


@dataclass(frozen=True, slots=True)
class Level:
    """What was usual, and where to draw the line."""

    usual: float
    line: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the rules of one deployment are set to; None where nothing is known to set.

    Attributes:
        release / generation: whose names are used.
        engine: whose figures these are.
        step_s: scrape interval.
        pool_tokens: size of the KV pool.
        seats: max_num_seqs in force.
        limit: recommended limit on running requests.
        hit_rate / ttft_s / residence_s: levels.
        waiting: more waiting requests than this are unusual.
        plateau_tok_s: generated tokens per second at the plateau.
    """

    release: Version
    generation: Generation
    engine: str
    step_s: float
    pool_tokens: int | None
    seats: int | None
    limit: int | None
    hit_rate: Level | None
    ttft_s: Level | None
    residence_s: Level | None
    waiting: float
    plateau_tok_s: float | None

    @property
    def window_s(self) -> float:
        """Range of rates: eight scrapes."""
        return _WINDOW_STEPS * self.step_s

    @property
    def hold_s(self) -> float:
        """How long a condition must hold: three scrapes."""
        return _HOLD_STEPS * self.step_s


def tuning(analysis: Analysis) -> Tuning:
    """Read the levels off an analysis.

    Raises:
        InputError: the analysis has no timeline to tune to.
    """
    tracks = selection.main_tracks(analysis)
    if tracks is None:
        raise InputError("the analysis has no timeline: alert rules are tuned to metrics over time")
    epoch = _epoch(analysis, tracks.engine)
    stated = None if epoch is None or epoch.vllm_version is None else epoch.vllm_version
    release = (parse_version(stated) if stated else None) or newest_release()
    generation: Generation = default_generation(release)
    if epoch is not None and epoch.generation in ("V0", "V1"):
        generation = "V0" if epoch.generation == "V0" else "V1"
    ceiling = next((item for item in analysis.ceilings if item.engine in (tracks.engine, "")), None)
    limit = None if ceiling is None or ceiling.max_num_seqs is None else ceiling.max_num_seqs.value
    seats = None if epoch is None else epoch.config.get("max_num_seqs")
    before, after = _before(analysis, tracks, "waiting")
    return Tuning(
        release=release,
        generation=generation,
        engine=tracks.engine,
        step_s=max(1.0, tracks.step_s),
        pool_tokens=None if epoch is None else epoch.kv_pool.tokens,
        seats=seats if isinstance(seats, int) else None,
        limit=None if limit is None else math.floor(limit),
        hit_rate=_rate_level(*_before(analysis, tracks, "hit_rate")),
        ttft_s=_time_level(*_before(analysis, tracks, "ttft_s")),
        residence_s=_falling_level(*_before(analysis, tracks, "residence_s")),
        waiting=_waiting(before, after),
        plateau_tok_s=_plateau(analysis, tracks),
    )


def _epoch(analysis: Analysis, engine: str) -> EpochView | None:
    for view in analysis.engines:
        if view.engine == engine and view.epochs:
            return view.epochs[-1]
    return None


def _before(
    analysis: Analysis, tracks: EngineTracks, signal: str
) -> tuple[Sequence[float], Sequence[float]]:
    """Give the values of a signal before the onset and in the incident; all before without one."""
    track = tracks.signals.get(signal)
    if track is None:
        return (), ()
    onset, end = analysis.verdict.onset, analysis.verdict.end or math.inf
    first, last = (math.inf, math.inf) if onset is None else onset
    pairs = [(t, v) for t, v in zip(track.times, track.values, strict=True) if v is not None]
    before = [value for time, value in pairs if time <= first]
    return before, [value for time, value in pairs if last <= time <= end]


def _rate_level(before: Sequence[float], after: Sequence[float]) -> Level | None:
    if not before:
        return None
    usual = median(before)
    worst = median(after) if after else usual
    if usual - worst >= _HIT_FALL:
        return Level(usual, round((usual + worst) / 2, 3))
    return Level(usual, round(0.75 * usual, 3)) if usual >= 2 * _HIT_FALL else None


def _time_level(before: Sequence[float], after: Sequence[float]) -> Level | None:
    usual = median(before) if before else 0.0
    if usual <= 0:
        return None
    worst = median(after) if after else usual
    if worst >= _FACTOR * usual:
        return Level(usual, _three_digits(math.sqrt(usual * worst)))
    return Level(usual, _three_digits(_HEALTHY_FACTOR * max(before)))


def _falling_level(before: Sequence[float], after: Sequence[float]) -> Level | None:
    if not before or not after:
        return None
    usual, worst = median(before), median(after)
    if worst <= 0 or usual < _FACTOR * worst:
        return Level(usual, _three_digits(usual / 2)) if worst <= 0 < usual else None
    return Level(usual, _three_digits(math.sqrt(usual * worst)))


def _waiting(before: Sequence[float], after: Sequence[float]) -> float:
    usual = max(before, default=0.0)
    worst = median(after) if after else usual
    return float(math.ceil((usual + worst) / 2 if worst > usual else 2 * usual + 1))


def _plateau(analysis: Analysis, tracks: EngineTracks) -> float | None:
    """Give the throughput of the incident, if it is a plateau that was found."""
    if all(item.cause != "compute-plateau" for item in analysis.findings):
        return None
    _, after = _before(analysis, tracks, "generation_tps")
    return median(after) if after else None


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
