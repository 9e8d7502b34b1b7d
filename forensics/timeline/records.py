"""What the timeline hands on: one grid per engine on UTC, with the meaning of each signal."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import polars as pl

from forensics.diary import EngineDiary
from forensics.evidence import Place

_Made = TypeVar("_Made")

# Canonical signals, the columns of `EngineTimeline.grid` beside `time` and `elapsed_s`.
# Gauges hold the value at `time`; amounts hold what was added since the previous present point,
# `elapsed_s` seconds earlier; means are over the requests that ended in that interval.
SIGNALS: dict[str, str] = {
    "running": "requests in the running set (gauge)",
    "waiting": "requests waiting, preempted ones included (gauge)",
    "waiting_capacity": "waiting for room in pool or batch, 0.20+ (gauge)",
    "waiting_deferred": "waiting for another reason, 0.20+ (gauge)",
    "swapped": "requests swapped out, V0 (gauge)",
    "kv_usage": "share of the pool referenced by running requests, 0-1 (gauge)",
    "queries": "prefix-cache lookups, tokens or blocks by version (amount)",
    "hits": "prefix-cache hits, same unit as queries (amount)",
    "prompt_tokens": "prompt tokens of requests that began to answer (amount)",
    "cached_tokens": "prompt tokens served from the local cache, 0.16+ (amount)",
    "computed_tokens": "prompt tokens computed, by source 0.16+ or per request 0.13+ (amount)",
    "external_tokens": "prompt tokens loaded from outside, 0.16+ (amount)",
    "generation_tokens": "tokens generated (amount)",
    "preemptions": "preemptions counted (amount)",
    "preemption_lower_bound": "preemptions proven by V0's sampled warnings (amount)",
    "finished": "requests finished, aborts excluded (amount)",
    "aborted": "requests aborted as counted or logged (amount)",
    "rejected": "requests refused by a queue limit or answered 429/503 (amount)",
    "first_tokens": "requests that got a first token (amount)",
    "ended": "requests that ended, from the e2e histogram (amount)",
    "hit_rate": "interval hit rate 0-1, best available definition",
    "counter_hit_rate": "hits / queries as exposed, whatever they count in that release",
    "hit_weight": "tokens (or blocks) behind hit_rate",
    "logged_hit_rate": "rate printed in the log 0-1: last 1,000 requests (V1), lifetime (V0)",
    "queries_per_prompt_token": "quality flag: near 1 when queries are a hit rate's denominator",
    "prompt_tps": "prompt tokens per second",
    "generation_tps": "generated tokens per second",
    "requests_per_s": "finished requests per second",
    "ttft_s": "mean time to first token",
    "e2e_s": "mean end-to-end latency",
    "queue_s": "mean time from arrival to first scheduling",
    "prefill_s": "mean prefill time",
    "decode_s": "mean decode time, waiting after preemption included",
    "itl_s": "mean inter-token latency",
    "prompt_len": "mean prompt tokens per finished request",
    "output_len": "mean generated tokens per finished request",
    "computed_len": "mean prompt tokens computed per finished request, 0.13+",
    "block_idle_s": "mean idle time before eviction of sampled blocks, --kv-cache-metrics",
    "block_reuse_s": "mean reuse gap of sampled blocks, --kv-cache-metrics",
    "block_life_s": "mean lifetime of sampled blocks, --kv-cache-metrics",
    "residence_s": "estimated survival of a released block (batch-ceiling.md 5.1)",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a signal came from.

    Attributes:
        clock: "metrics" or "log".
        source: index of the source read.
        series: exposed name (with label filter) or kind of log line.
        quality: "" when direct, else what was inferred, in a few words.
    """

    clock: str
    source: int
    series: str
    quality: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at an instant.

    `kind`: start, stop, restart, reset, sleep, wake, error, oom, engine_dead, config_change,
    preemption_warning, version_change, shed, abort, unanswered. `text` comes from this product, not
    from input.
    """

    time: float
    kind: str
    text: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram over time, reset-adjusted.

    Attributes:
        edges: upper bounds, shape (b,), last one inf.
        times: UTC seconds, shape (t,).
        counts: requests at or below each edge added since the previous time, shape (t, b).
        series: exposed base name.
    """

    edges: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    series: str

    def over(self, start: float, end: float) -> np.ndarray:
        """Sum the cumulative counts of the points in (start, end]; shape (b,)."""
        inside = (self.times > start) & (self.times <= end)
        total: np.ndarray = np.nansum(self.counts[inside], axis=0)
        return total


@dataclass(frozen=True, slots=True)
class Lines:
    """Where the lines of one kind stand: UTC s (increasing), source and offset; shape (n,) each."""

    times: np.ndarray
    sources: np.ndarray
    offsets: np.ndarray

    def nearest(self, time: float) -> Place:
        """Give the place of the line nearest to a time."""
        at = int(np.argmin(np.abs(self.times - time)))
        return Place(int(self.sources[at]), int(self.offsets[at]))


@dataclass(frozen=True, slots=True)
class EngineTimeline:
    """One engine on UTC.

    `grid` has `time` (UTC s), `elapsed_s` and every column of SIGNALS (Float64, null = not
    observed). `log_grid` has the same columns filled from stats lines alone (the log's own
    cadence), also when metrics exist; `grid` falls back to it signal by signal. `seen_until` is the
    last stamp of any line of its log (UTC s): stats lines may stop while the log goes on.
    """

    engine: str
    instance: str | None
    step_s: float
    grid: pl.DataFrame
    log_grid: pl.DataFrame
    origins: Mapping[str, Origin]
    marks: tuple[Mark, ...]
    diary: EngineDiary
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    seen_until: float | None = None
    lines: Mapping[str, Lines] = field(default_factory=dict)
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Give what was made of this engine under a key, made at the first asking.

        For what many rules ask again for each of many falls; the key names the function and all
        else that the result depends on.
        """
        if key not in self._known:
            self._known[key] = make()
        found: _Made = self._known[key]
        return found

    def within(self, start: float, end: float) -> pl.DataFrame:
        """Give the rows of the grid in (start, end], UTC seconds."""
        first, last = np.searchsorted(self.grid["time"].to_numpy(), (start, end), side="right")
        return self.grid.slice(int(first), max(0, int(last - first)))

    def has(self, signal: str) -> bool:
        """Tell whether a signal was ever observed."""
        return self.grid[signal].null_count() < self.grid.height

    def place(self, signal: str, time: float) -> Place | None:
        """Give the place of a signal's figure at a time; None when it was never observed."""
        origin = self.origins.get(signal)
        if origin is None:
            return None
        if origin.clock == "log" and origin.series in self.lines:
            return self.lines[origin.series].nearest(time)
        return Place(origin.source, series=origin.series, time=time)


@dataclass(frozen=True, slots=True)
class ClockNote:
    """How the clock of one source was put on UTC.

    Attributes:
        source: index of the source (first of its stream).
        offset_s: seconds the source's stamps are ahead of UTC (9 h for Asia/Seoul: 32400).
        time_zone / year: what was settled; None when it did not need settling.
        quality: "exact", "matched", "assumed" or "undetermined".
        how: one sentence.
    """

    source: int
    offset_s: float | None
    time_zone: str | None
    year: int | None
    quality: str
    how: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All engines, in the order of their names, and how their clocks were settled."""

    engines: tuple[EngineTimeline, ...]
    clocks: tuple[ClockNote, ...]
