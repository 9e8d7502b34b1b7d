"""Collects series and points while a dump is read and lays them into the tables of the evidence."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.errors import InputError
from forensics.evidence import LARGEST_VALUE, SAMPLES, SERIES, Damage, FileCoverage
from parsers.interface import Parsed, ReadOptions, Source
from parsers.prometheus.facts import facts_of
from parsers.prometheus.known import is_known
from parsers.prometheus.labels import SeriesName

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint32]

MAX_DAMAGES = 1000
"""Places kept per source; further damage is counted only."""

DROPPED = -1
"""Key of a series that is not kept."""

_UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))
"""From which size on a stamp cannot be seconds (1e11 s is the year 5138), and what it is then."""
_LAST_SECOND = 253_402_300_800.0
"""End of the year 9999: no later time can be written."""


@dataclass(slots=True)
class Rows:
    """The growing tables of one source.

    Attributes:
        source: where the rows come from.
        options: which rows to keep.
        lines / matched / ignored / unknown: counted by the formats that read lines.
        damaged: places that could not be understood, kept in `damages` up to a bound.
        notes: sentences for the operator.
        dropped_series / dropped_samples: left out, since the product has no use for them.
    """

    source: Source
    options: ReadOptions
    clock: str = "utc"
    bytes: int = 0
    lines: int = 0
    matched: int = 0
    ignored: int = 0
    unknown: int = 0
    damaged: int = 0
    notes: list[str] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    dropped_series: int = 0
    dropped_samples: int = 0
    _keys: dict[SeriesName, int] = field(default_factory=dict)
    _offsets: list[int] = field(default_factory=list)
    _parts: list[pl.DataFrame] = field(default_factory=list)
    _loose: list[tuple[int, float | None, float]] = field(default_factory=list)

    def key(self, name: SeriesName, offset: int) -> int:
        """Return the key of a series, or `DROPPED` when it is not to be kept."""
        known = self._keys.get(name)
        if known is not None:
            return known
        if self.options.known_series_only and not is_known(name.metric):
            self.dropped_series += 1
            self._keys[name] = DROPPED
            return DROPPED
        key = len(self._offsets)
        self._keys[name] = key
        self._offsets.append(offset)
        return key

    def is_empty(self) -> bool:
        """Tell whether no series was seen at all."""
        return not self._keys

    def has_nameless(self) -> bool:
        """Tell whether any series came without a metric name."""
        return any(not name.metric for name in self._keys)

    def add(self, key: int, stamp: float | None, value: float) -> None:
        """Add one point (stamp in UTC seconds; None when nothing tells it)."""
        if key == DROPPED:
            self.dropped_samples += 1
        else:
            self._loose.append((key, stamp, value))

    def add_points(self, keys: Keys, stamps: Floats, values: Floats) -> None:
        """Add points in bulk, three arrays of one length; NaN stamps count as unknown."""
        self.add_frame(
            pl.DataFrame(
                {"series": keys, "stamp": stamps, "value": values}, schema_overrides=SAMPLES
            ).with_columns(pl.col("stamp").fill_nan(None))
        )

    def add_frame(self, points: pl.DataFrame) -> None:
        """Add points that already have the schema `evidence.SAMPLES`."""
        self._flush()
        self._append(points)

    def damage(self, offset: int, reason: str) -> None:
        """Count a damaged place; raises InputError when the operator asked to be strict."""
        if self.options.strict:
            raise InputError(f"{self.source.path}: byte {offset}: {reason}", self.source.path)
        self.damaged += 1
        if len(self.damages) < MAX_DAMAGES:
            self.damages.append(Damage(self.source.index, offset, reason))

    def finish(self, format_name: str) -> Parsed:
        """Close the tables and give the result of the source."""
        self._flush()
        samples = (
            pl.concat(self._parts, rechunk=False) if self._parts else pl.DataFrame(schema=SAMPLES)
        )
        series = self._series_frame()
        self._note_impossible(samples, series)
        if self.dropped_series:
            self.notes.append(
                f"{self.dropped_series} series ({self.dropped_samples} points) that the analysis "
                "has no use for were left out"
            )
        coverage = FileCoverage(
            source=self.source.index,
            format=format_name,
            bytes=self.bytes,
            lines=self.lines,
            matched=self.matched,
            ignored=self.ignored,
            unknown=self.unknown,
            damaged=self.damaged,
            samples=samples.height,
            note="; ".join(dict.fromkeys(self.notes)) or None,
        )
        facts = facts_of(series, samples)
        return Parsed(coverage, series, samples, facts=facts, damages=tuple(self.damages))

    def _flush(self) -> None:
        """Move points added one by one into a frame."""
        if self._loose:
            keys, stamps, values = zip(*self._loose, strict=True)
            self._loose = []
            columns = {"series": keys, "stamp": stamps, "value": values}
            self._append(pl.DataFrame(columns, schema=SAMPLES))

    def _append(self, points: pl.DataFrame) -> None:
        """Keep the points at times there can be, inside the window that was asked for."""
        points = self._in_seconds(points)
        since, until = self.options.since, self.options.until
        if since is not None:
            points = points.filter(pl.col("stamp").is_null() | (pl.col("stamp") >= since))
        if until is not None:
            points = points.filter(pl.col("stamp").is_null() | (pl.col("stamp") <= until))
        if points.height:
            self._parts.append(points)

    def _in_seconds(self, points: pl.DataFrame) -> pl.DataFrame:
        """Read stamps of other units as what they are; count and drop those that are no time."""
        stamp = pl.col("stamp")
        # Almost every dump is in seconds and has only possible times: one look decides.
        odd = ~stamp.is_between(0.0, _UNITS[-1][0], closed="left")
        if not points.select(odd.any()).item():
            return points
        for least, per_second, unit in _UNITS:
            large = stamp.is_finite() & (stamp >= least)
            if points.select(large.any()).item():
                self.notes.append(f"time stamps in {unit} were read as such")
                points = points.with_columns(
                    pl.when(large).then(stamp / per_second).otherwise(stamp).alias("stamp")
                )
        never = stamp.is_not_null() & ~stamp.is_between(0.0, _LAST_SECOND, closed="left")
        self._damage_points(points.filter(never), "a time stamp that is no time")
        return points.filter(~never)

    def _note_impossible(self, samples: pl.DataFrame, series: pl.DataFrame) -> None:
        """Say which values vLLM cannot have exposed; NaN is none of them, it says "nothing"."""
        value = pl.col("value")
        # V0 exposes a hit rate of -1 where caching is off.
        rate = pl.col("metric").str.contains("hit_rate", literal=True)
        exposed = series.filter(pl.col("metric").str.starts_with("vllm") & ~rate)
        never = value.is_not_nan() & ~value.is_between(0.0, LARGEST_VALUE)
        wrong = samples.filter(never).join(
            exposed.select("series", "metric"), on="series", how="inner", maintain_order="left"
        )
        if wrong.height:
            self.notes.append(
                f"{wrong.height} values are negative, infinite or above {LARGEST_VALUE:g}, which "
                f"no vLLM series can have (first: {wrong['metric'][0]}); they were not used"
            )

    def _damage_points(self, wrong: pl.DataFrame, reason: str) -> None:
        """Count points as damage at the place of their series."""
        for key in wrong["series"].head(MAX_DAMAGES):
            self.damage(self._offsets[key], reason)
        self.damaged += max(0, wrong.height - MAX_DAMAGES)

    def _series_frame(self) -> pl.DataFrame:
        """Lay the names of the kept series out as `evidence.SERIES`."""
        names = [name for name, key in self._keys.items() if key != DROPPED]
        columns = {
            "series": range(len(names)),
            "source": [self.source.index] * len(names),
            "offset": self._offsets,
            "clock": [self.clock] * len(names),
            "instance": [name.instance for name in names],
            "engine": [name.engine for name in names],
            "metric": [name.metric for name in names],
            "labels": [name.labels for name in names],
            "edge": [name.edge for name in names],
        }
        return pl.DataFrame(columns, schema=SERIES)
