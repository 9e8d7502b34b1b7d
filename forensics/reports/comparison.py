"""Two analyses → what changed: settings, traffic and figures, each against its own noise.

A figure is the mean over the incident where one was found, over the whole window where none was:
a fix is judged against the bad time, not against an average of good and bad.

The noise of a figure is the standard error of its mean over the points of the timeline. Points of
one engine follow one another closely, so their number is divided by how long a value remembers
itself (the lag-1 autocorrelation r gives n·(1-r)/(1+r) independent ones, at least two; von Storch
and Zwiers, Statistical Analysis in Climate Research, 17.1). A change counts from three standard
errors on, and from a least size below which nobody would act.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forensics.analysis import Analysis, EngineTracks
from forensics.verdict import HEALTHY, INSUFFICIENT

_ERRORS = 3.0
_LEAST_POINTS = 4
# The least change worth a word: points of a rate, share of anything else. Guesses.
_LEAST_RATE = 0.02
_LEAST_SHARE = 0.10

# Which way is better; 0 where a change is neither (traffic).
DIRECTIONS: Mapping[str, int] = {
    "hit_rate": 1,
    "preemptions": -1,
    "kv_usage": 0,
    "running": 0,
    "waiting": -1,
    "ttft_s": -1,
    "itl_s": -1,
    "e2e_s": -1,
    "generation_tps": 1,
    "requests_per_s": 0,
    "prompt_tps": 0,
    "prompt_len": 0,
    "output_len": 0,
}
TRAFFIC = ("requests_per_s", "prompt_len", "output_len")
_RATES = frozenset({"hit_rate", "kv_usage"})


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure on both sides; None where it was not observed.

    `judgement`: better, worse, changed, same, or unclear. `noise` is one standard error of the
    difference.
    """

    signal: str
    before: float | None
    after: float | None
    noise: float | None
    judgement: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is known on both sides and differs."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Before against after.

    `outcome`: worked, remains, appeared, changed, both_healthy or undecided.
    """

    outcome: str
    before_cause: str
    after_cause: str
    settings: Sequence[Setting]
    figures: Sequence[Figure]

    @property
    def traffic_changed(self) -> Sequence[str]:
        """Name the signals of traffic that differ beyond their noise."""
        return [
            item.signal
            for item in self.figures
            if item.judgement == "changed" and item.signal in TRAFFIC
        ]


def compare(before: Analysis, after: Analysis) -> Comparison:
    """Set two analyses against each other."""
    first, second = before.verdict.cause, after.verdict.cause
    return Comparison(
        outcome=_outcome(first, second),
        before_cause=first,
        after_cause=second,
        settings=_settings(before, after),
        figures=[
            figure
            for signal in DIRECTIONS
            if (figure := _figure(signal, before, after)) is not None
        ],
    )


def _outcome(before: str, after: str) -> str:
    if INSUFFICIENT in (before, after):
        return "undecided"
    if before == after:
        return "both_healthy" if before == HEALTHY else "remains"
    if after == HEALTHY:
        return "worked"
    return "appeared" if before == HEALTHY else "changed"


def _settings(before: Analysis, after: Analysis) -> Sequence[Setting]:
    first, second = _stated(before), _stated(after)
    return [
        Setting(name, value, second[name])
        for name, value in first.items()
        if name in second and value != second[name]
    ]


def _stated(analysis: Analysis) -> dict[str, str]:
    """Collect what the last process of every engine ran with, equal values once."""
    found: dict[str, dict[str, None]] = {}
    for engine in analysis.engines:
        if not engine.epochs:
            continue
        last = engine.epochs[-1]
        facts: dict[str, object] = {
            "vllm": last.vllm_version,
            "engine": last.generation,
            "model": last.model,
            "gpu": last.gpu.name,
            "kv_pool_tokens": last.kv_pool.tokens,
            "block_size": last.kv_pool.block_size,
            **last.config,
        }
        for name, value in facts.items():
            if value is not None:
                found.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(values) for name, values in found.items()}


def _figure(signal: str, before: Analysis, after: Analysis) -> Figure | None:
    first, second = _mean(signal, before), _mean(signal, after)
    if first is None and second is None:
        return None
    if first is None or second is None:
        one, other = first and first[0], second and second[0]
        return Figure(signal, one, other, None, "unclear")
    noise = math.hypot(first[1], second[1])
    return Figure(signal, first[0], second[0], noise, _judged(signal, first[0], second[0], noise))


def _judged(signal: str, before: float, after: float, noise: float) -> str:
    change = after - before
    least = _LEAST_RATE if signal in _RATES else _LEAST_SHARE * max(abs(before), abs(after))
    if math.isinf(noise):
        return "unclear"
    if abs(change) < _ERRORS * noise or abs(change) < least or change == 0:
        return "same"
    direction = DIRECTIONS[signal]
    if direction == 0:
        return "changed"
    return "better" if change * direction > 0 else "worse"


def _mean(signal: str, analysis: Analysis) -> tuple[float, float] | None:
    """Give the mean of a signal over all engines and points, and its standard error."""
    means, errors = [], []
    for tracks in analysis.tracks:
        values = _inside(signal, tracks, _judged_time(analysis))
        if not values:
            continue
        means.append(sum(values) / len(values))
        errors.append(standard_error(values))
    if not means:
        return None
    return sum(means) / len(means), math.sqrt(sum(e * e for e in errors)) / len(errors)


def _judged_time(analysis: Analysis) -> tuple[float, float]:
    onset, end = analysis.verdict.onset, analysis.verdict.end
    if onset is not None:
        return onset[1], math.inf if end is None else end
    return analysis.window or (-math.inf, math.inf)


def _inside(signal: str, tracks: EngineTracks, time_span: tuple[float, float]) -> Sequence[float]:
    track = tracks.signals.get(signal)
    if track is None:
        return ()
    first, last = time_span
    pairs = zip(track.times, track.values, strict=True)
    return [value for time, value in pairs if value is not None and first <= time <= last]


def standard_error(values: Sequence[float]) -> float:
    """Give the standard error of the mean of points that follow one another; inf for too few.

    >>> round(standard_error([1.0, 2.0, 1.0, 2.0] * 25), 3)
    0.05
    """
    count = len(values)
    if count < _LEAST_POINTS:
        return math.inf
    mean = sum(values) / count
    around = [value - mean for value in values]
    variance = sum(a * a for a in around) / (count - 1)
    if variance == 0:
        return 0.0
    products = sum(a * b for a, b in pairwise(around))
    memory = min(0.99, max(0.0, products / sum(a * a for a in around)))
    independent = max(2.0, count * (1 - memory) / (1 + memory))
    return math.sqrt(variance / independent)
