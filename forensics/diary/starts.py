"""Signs of life and death of one engine → when its processes began and ended."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.evidence import Evidence, Place

# Metrics show one start by several values (process start, creation stamps) within a minute or so.
SAME_START_S = 5.0
# Weights load between the lines of one start; without any sign of life in between, lines this far
# apart still belong to it.
_LONGEST_START_S = 1800.0


@dataclass(frozen=True, slots=True)
class Start:
    """When a process began, UTC s, and where that was read."""

    time: float
    place: Place | None


def process_starts(
    evidence: Evidence, events: pl.DataFrame, facts: pl.DataFrame, series: pl.DataFrame
) -> list[Start]:
    """Find the starts of an engine's processes, in order of time.

    Args:
        evidence: all rows, stamps UTC.
        events: the engine's events.
        facts: the engine's facts.
        series: the engine's series.
    """
    found: list[Start] = []
    logged = events.filter(
        pl.col("kind").is_in(["process_start", "startup_logo", "startup_version"])
        & pl.col("stamp").is_not_null()
    )
    found += [
        Start(stamp, Place(source, offset))
        for stamp, source, offset in logged.select("stamp", "source", "offset").iter_rows()
    ]
    versions = facts.filter(
        (pl.col("key") == "vllm.version")
        & pl.col("stamp").is_not_null()
        & pl.col("offset").is_not_null()
        & pl.col("source").is_in(evidence.events["source"].unique().to_list())
    )
    found += [
        Start(stamp, Place(source, offset))
        for stamp, source, offset in versions.select("stamp", "source", "offset").iter_rows()
    ]
    signs = events.filter(
        pl.col("kind").is_in(["stats_periodic", "process_stop", "engine_death"])
        & pl.col("stamp").is_not_null()
    )["stamp"].to_numpy()
    in_log = _separate(sorted(found, key=lambda start: start.time), np.sort(signs))
    counted = _metric_starts(evidence, series)
    # The metrics' own start time precedes the log's first line by the import time; the log wins.
    extra = [
        start
        for start in counted
        if not any(-30.0 < known.time - start.time < 600.0 for known in in_log)
    ]
    return sorted([*in_log, *extra], key=lambda start: start.time)


def _separate(starts: list[Start], signs: np.ndarray) -> list[Start]:
    """Keep the first line of each start: another one begins only after a sign of life or death.

    Args:
        starts: lines that a start prints, in order of time.
        signs: UTC s of stats lines and ends, increasing.
    """
    kept: list[Start] = []
    last = float("-inf")
    for start in starts:
        lived = np.searchsorted(signs, start.time) > np.searchsorted(signs, last, side="right")
        if not kept or lived or start.time - last > _LONGEST_START_S:
            kept.append(start)
        last = start.time
    return kept


def _metric_starts(evidence: Evidence, series: pl.DataFrame) -> list[Start]:
    """Give the process starts that metrics prove: a changed start time or creation stamp."""
    wanted = series.filter(
        (pl.col("metric") == "process_start_time_seconds")
        | pl.col("metric").is_in(
            ["vllm:prompt_tokens_created", "vllm:generation_tokens_created",
             "vllm:prefix_cache_queries_created"]
        )
    )  # fmt: skip
    if not wanted.height:
        return []
    points = evidence.samples.join(wanted.select("series", "source", "metric"), on="series")
    starts: list[Start] = []
    values = points.group_by("value").agg(
        pl.col("source").first(), pl.col("metric").first(), pl.col("stamp").min()
    )
    distinct = sorted(values.iter_rows(), key=lambda row: float(row[0]))
    lived = np.sort(points["stamp"].to_numpy())
    for value, source, metric, stamp in distinct:
        # Process start and creation stamps of one start lie as far apart as loading takes; only a
        # value with samples between it and the previous one is another process.
        if not value or (starts and _between(lived, starts[-1].time, value) == 0):
            continue
        if not starts or value - starts[-1].time > SAME_START_S:
            starts.append(Start(float(value), Place(source, series=metric, time=stamp)))
    return starts


def _between(times: np.ndarray, low: float, high: float) -> int:
    return int(np.searchsorted(times, high) - np.searchsorted(times, low, side="right"))


def process_stops(events: pl.DataFrame) -> list[float]:
    """Give the times at which a process stopped or died, UTC s."""
    stops = events.filter(
        pl.col("kind").is_in(["process_stop", "shutdown", "engine_death"])
        & pl.col("stamp").is_not_null()
    )
    return sorted(stops["stamp"].to_list())


def first_seen(evidence: Evidence, events: pl.DataFrame, series: pl.DataFrame) -> float | None:
    """Give the first stats line or sample of the engine, UTC s; None when there is neither."""
    times: list[float] = []
    if events.height and events["stamp"].null_count() < events.height:
        lowest = events.filter(pl.col("kind") == "stats_periodic")["stamp"].min()
        times += [float(lowest)] if isinstance(lowest, int | float) else []
    used = series.filter(pl.col("metric") == "vllm:num_requests_running").select("series")
    first = evidence.samples.join(used, on="series", how="semi")["stamp"].min()
    times += [float(first)] if isinstance(first, int | float) else []
    return min(times, default=None)
