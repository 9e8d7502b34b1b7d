"""Tracks of one engine → its grid of canonical signals, each with its origin.

Amounts and means are per interval; gauges are the last value of the bin; gaps stay null.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from forensics.timeline import rates
from forensics.timeline.bins import (
    bin_index,
    bin_times,
    fitted,
    growth,
    last_values,
    true_step,
)
from forensics.timeline.recordings import Track, spacing
from forensics.timeline.records import SIGNALS, Histogram, Origin
from forensics.timeline.signals import (
    COUNTERS,
    GAUGES,
    HISTOGRAMS,
    LIFETIME_HIT_RATE,
    MEANS,
    Exposed,
)

SCHEMA: dict[str, pl.DataType] = {
    "time": pl.Float64(),
    "elapsed_s": pl.Float64(),
    **{name: pl.Float64() for name in SIGNALS},
}


@dataclass(slots=True)
class Columns:
    """Columns under construction on common bins: `start`, `step`, and arrays of shape (n,)."""

    start: float
    step: float
    times: np.ndarray
    present: np.ndarray
    values: dict[str, np.ndarray] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    resets: np.ndarray = field(default_factory=lambda: np.array([], dtype=bool))

    @property
    def count(self) -> int:
        """Number of bins."""
        return int(self.times.size)

    def get(self, name: str) -> np.ndarray:
        """Give a column, all NaN when it was never observed."""
        return self.values.get(name, np.full(self.count, np.nan))

    def frame(self) -> pl.DataFrame:
        """Give the grid: rows without any sample dropped, NaN as null."""
        data = {
            "time": self.times,
            "elapsed_s": self.elapsed(),
            **{name: self.get(name) for name in SIGNALS},
        }
        return (
            pl.DataFrame(data, schema=SCHEMA)
            .with_columns(pl.all().fill_nan(None))
            .filter(pl.Series(self.present))
        )

    def elapsed(self) -> np.ndarray:
        """Give the seconds since the previous bin that had a sample; NaN for the first."""
        result = np.full(self.count, np.nan)
        known = np.flatnonzero(self.present)
        result[known[1:]] = np.diff(self.times[known])
        return result


def columns_from_tracks(tracks: list[Track], like: Columns | None = None) -> Columns | None:
    """Lay an engine's metric tracks on bins; None when there is not a single point.

    Args:
        tracks: of the engine.
        like: take these columns' bins; None for bins as wide as the scrapes are apart.
    """
    used = [track for track in tracks if track.times.size and track.metric.startswith("vllm:")]
    if not used:
        return None
    start, step, times = (like.start, like.step, like.times) if like else _own_bins(used)
    present = np.zeros(times.size, dtype=bool)
    for track in used:
        index = bin_index(track.times, start, step, times.size)
        present[index[index >= 0]] = True
    columns = Columns(start, step, times, present, resets=np.zeros(times.size, dtype=bool))
    _gauges(columns, used)
    _counters(columns, used)
    _means(columns, used)
    _lifetime(columns, used)
    return columns


def _own_bins(used: list[Track]) -> tuple[float, float, np.ndarray]:
    densest = max(used, key=lambda track: (track.times.size, track.metric))
    step = spacing(densest.times) or 1.0
    moving = next((t for t in used if t.metric == "vllm:generation_tokens_total"), None)
    step = true_step(step, moving)
    start, end, step = fitted(np.concatenate([track.times for track in used]), step)
    return start, step, bin_times(start, end, step)


def histograms_from_tracks(tracks: list[Track], columns: Columns) -> dict[str, Histogram]:
    """Give the engine's histograms, cumulative over edges, as growth per bin."""
    found: dict[str, Histogram] = {}
    for name, bases in HISTOGRAMS.items():
        for base in bases:
            by_edge: dict[float, np.ndarray] = {}
            for track in tracks:
                if track.metric == f"{base}_bucket" and track.edge is not None:
                    values = last_values(track, columns.start, columns.step, columns.count)
                    amounts, _ = growth(values, columns.present)
                    known = by_edge.get(track.edge)
                    by_edge[track.edge] = amounts if known is None else _sum(known, amounts)
            if len(by_edge) >= 2 and max(by_edge) == np.inf:
                edges = np.array(sorted(by_edge))
                found[name] = Histogram(
                    edges,
                    columns.times,
                    np.stack([by_edge[edge] for edge in edges], axis=1),
                    base,
                )
                break
    return found


def _choose(
    tracks: list[Track], choices: tuple[Exposed, ...]
) -> tuple[Exposed, list[Track]] | None:
    for wanted in choices:
        found = [track for track in tracks if track.matches(wanted)]
        if found:
            return wanted, found
    return None


def _origin(tracks: Sequence[Track], quality: str = "") -> Origin:
    """Name what was added up: the labels that all of it has select it."""
    first = tracks[0]
    shared = set(first.labels.items()).intersection(*(track.labels.items() for track in tracks))
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(shared))
    return Origin(
        "metrics",
        first.source,
        f"{first.exposed}{{{labels}}}" if labels else first.exposed,
        quality,
    )


def _gauges(columns: Columns, tracks: list[Track]) -> None:
    for name, choices in GAUGES.items():
        chosen = _choose(tracks, choices)
        if chosen is None:
            continue
        wanted, found = chosen
        total: np.ndarray | None = None
        by_process: dict[str, np.ndarray] = {}
        for track in found:
            values = last_values(track, columns.start, columns.step, columns.count)
            # Several API processes expose the same gauge once each (label pid): same engine.
            rest = repr(sorted((k, v) for k, v in track.labels.items() if k != "pid"))
            known = by_process.get(rest)
            by_process[rest] = values if known is None else np.fmax(known, values)
        for values in by_process.values():
            total = values if total is None else _sum(total, values)
        if total is not None:
            columns.values[name] = total
            columns.origins[name] = _origin(found, wanted.quality)


def _counters(columns: Columns, tracks: list[Track]) -> None:
    for name, choices in COUNTERS.items():
        chosen = _choose(tracks, choices)
        if chosen is None:
            continue
        wanted, found = chosen
        total: np.ndarray | None = None
        for track in found:
            values = last_values(track, columns.start, columns.step, columns.count)
            amounts, resets = growth(values, columns.present)
            columns.resets |= resets
            total = amounts if total is None else _sum(total, amounts)
            if name == "prompt_tokens" and track.values.size:
                columns.values["_prompt_base"] = np.array([float(track.values[0])])
        if total is not None:
            columns.values[name] = total
            columns.origins[name] = _origin(found, wanted.quality)


def _means(columns: Columns, tracks: list[Track]) -> None:
    for name, bases in MEANS.items():
        for base in bases:
            sums = _grown(columns, tracks, f"{base}_sum")
            counts = _grown(columns, tracks, f"{base}_count")
            if sums is None or counts is None:
                continue
            columns.values[name] = rates.ratio(sums[0], counts[0])
            columns.origins[name] = sums[1]
            break


def _grown(columns: Columns, tracks: list[Track], metric: str) -> tuple[np.ndarray, Origin] | None:
    total: np.ndarray | None = None
    found = [track for track in tracks if track.metric == metric and track.edge is None]
    for track in found:
        values = last_values(track, columns.start, columns.step, columns.count)
        amounts, _ = growth(values, columns.present)
        total = amounts if total is None else _sum(total, amounts)
    return None if total is None else (total, _origin(found))


def _lifetime(columns: Columns, tracks: list[Track]) -> None:
    for track in tracks:
        if track.metric == LIFETIME_HIT_RATE:
            columns.values["_lifetime"] = last_values(
                track, columns.start, columns.step, columns.count
            )
            columns.origins["_lifetime"] = _origin([track])


def _sum(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    both: np.ndarray = np.where(
        np.isnan(left), right, np.where(np.isnan(right), left, left + right)
    )
    return both
