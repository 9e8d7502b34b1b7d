"""Series of one engine → arrays on common bins: one recording, no twins, resets undone.

A folder may hold the same counters twice, say a range query and a few raw scrapes. A range query
answers with the last sample before each step, so its points lag behind the raw ones, and mixing the
two would look like counter resets. One recording, the one with most points, is therefore used, and
another only where the first has nothing: other metrics, or times outside its own.
"""

import json
from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.evidence import LARGEST_VALUE, Evidence
from forensics.timeline.signals import Exposed, canonical_name

_LATEST_S = 4.1e9  # the year 2100: later stamps are of another unit
# Labels that tell where a series came from, not what it counts.
_PLACE_LABELS = frozenset(
    {
        "job", "pod", "namespace", "container", "service", "endpoint", "node", "cluster",
        "prometheus", "prometheus_replica", "replica", "env", "region", "zone", "model_name",
        "exported_job", "exported_instance", "exported_pod", "__tenant_id__", "hostname",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Track:
    """One time series of an engine: what it counts, its points, and where it was read."""

    metric: str
    labels: dict[str, str]
    edge: float | None
    times: np.ndarray
    values: np.ndarray
    source: int
    exposed: str

    def matches(self, wanted: Exposed) -> bool:
        """Tell whether this is the family and labels wanted."""
        return (
            self.metric == wanted.metric
            and all(self.labels.get(name) == value for name, value in wanted.labels.items())
            and not any(self.labels.get(name) == value for name, value in wanted.excluded.items())
        )


def _plausible(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Tell which points can be counts, shares or seconds of our time; NaN and infinity cannot."""
    with np.errstate(invalid="ignore"):
        in_time = (times >= 0) & (times < _LATEST_S)
        plausible: np.ndarray = in_time & (values >= 0) & (values <= LARGEST_VALUE)
    return plausible


def spacing(times: np.ndarray) -> float:
    """Give the usual distance of points in seconds, one that occurs; 0 when there is only one."""
    steps = np.sort(np.diff(times))
    steps = steps[steps > 0]
    return float(steps[(steps.size - 1) // 2]) if steps.size else 0.0


def read_tracks(evidence: Evidence, series: pl.DataFrame) -> list[Track]:
    """Give one engine's tracks from its best recording, completed from the others.

    Args:
        evidence: all rows; stamps must be UTC.
        series: the series rows of the engine.
    """
    if not series.height:
        return []
    points = evidence.samples.join(series.select("series"), on="series", how="semi").sort(
        "series", "stamp", maintain_order=True
    )
    by_series = {
        key[0]: (frame["stamp"].to_numpy(), frame["value"].to_numpy())
        for key, frame in points.partition_by("series", as_dict=True).items()
    }
    format_of = {cover.source: cover.format for cover in evidence.coverage}
    recordings: dict[tuple[str, bool], list[Track]] = {}
    columns = ("series", "source", "metric", "labels", "edge", "instance")
    for key, source, metric, labels, edge, instance in series.select(columns).iter_rows():
        if key not in by_series:
            continue
        times, values = by_series[key]
        # Negative, infinite, absurd or NaN: no reading (the parser notes how many there are).
        finite = _plausible(times, values)
        track = Track(
            canonical_name(metric),
            {
                name: value
                for name, value in json.loads(labels or "{}").items()
                if name not in _PLACE_LABELS
            },
            edge,
            times[finite],
            values[finite],
            source,
            metric,
        )
        recording = (format_of.get(source, ""), instance is None)
        recordings.setdefault(recording, []).append(track)
    ranked = sorted(
        recordings.items(), key=lambda item: (-sum(t.times.size for t in item[1]), item[0])
    )
    merged: dict[tuple[str, str, float | None], Track] = {}
    for rank, (_, tracks) in enumerate(ranked):
        joined = _join(tracks)
        if rank == 0:
            merged = joined
            continue
        span = _span(merged)
        metrics = {track.metric for track in merged.values()}
        for name, track in joined.items():
            if name not in merged and track.metric not in metrics:
                merged[name] = track
            elif name in merged:
                merged[name] = _complete(merged[name], track, span)
    return [merged[name] for name in sorted(merged, key=repr)]


def _join(tracks: list[Track]) -> dict[tuple[str, str, float | None], Track]:
    """Join the pieces of one series that lie in several files (scrapes, parts of a range)."""
    pieces: dict[tuple[str, str, float | None], list[Track]] = {}
    for track in tracks:
        pieces.setdefault(
            (track.metric, json.dumps(track.labels, sort_keys=True), track.edge), []
        ).append(track)
    return {name: _stack(parts) for name, parts in pieces.items()}


def _stack(parts: list[Track]) -> Track:
    if len(parts) == 1:
        return parts[0]
    times = np.concatenate([part.times for part in parts])
    values = np.concatenate([part.values for part in parts])
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.concatenate((np.diff(times) > 0, [True])) if times.size else np.array([], bool)
    first = parts[0]
    return Track(
        first.metric, first.labels, first.edge, times[last], values[last], first.source,
        first.exposed,
    )  # fmt: skip


def _complete(track: Track, other: Track, span: tuple[float, float]) -> Track:
    # A lagging recording still shows older values just after the other one ends: leave a step out.
    margin = max(spacing(track.times), spacing(other.times))
    outside = (other.times < span[0] - margin) | (other.times > span[1] + margin)
    if not outside.any():
        return track
    rest = Track(
        other.metric, other.labels, other.edge, other.times[outside], other.values[outside],
        other.source, other.exposed,
    )  # fmt: skip
    return _stack([track, rest])


def _span(tracks: dict[tuple[str, str, float | None], Track]) -> tuple[float, float]:
    sized = [track for track in tracks.values() if track.times.size]
    return (
        min((track.times[0] for track in sized), default=np.inf),
        max((track.times[-1] for track in sized), default=-np.inf),
    )
