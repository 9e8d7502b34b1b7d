"""What metrics report that the log of the same engine reports too: the other side of a match."""

import numpy as np
import polars as pl

from forensics.diary.engines import EngineKey, EngineMap
from forensics.evidence import Evidence
from forensics.timeline.matching import Reported
from forensics.timeline.recordings import Track, read_tracks


def reported_by_metrics(evidence: Evidence, engines: EngineMap, stream: str) -> dict[str, Reported]:
    """Give what the metrics of the engines fed by a stream report, by rank."""
    found: dict[str, Reported] = {}
    for key in engines.keys:
        if stream in key.streams:
            reported = _of_engine(evidence, engines, key)
            if reported is not None:
                found[key.rank] = reported
    return found


def _of_engine(evidence: Evidence, engines: EngineMap, key: EngineKey) -> Reported | None:
    wanted = {
        "running": ("vllm:num_requests_running",),
        "waiting": ("vllm:num_requests_waiting",),
        "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        "generation_tokens": ("vllm:generation_tokens_total",),
        "prompt_tokens": ("vllm:prompt_tokens_total",),
    }
    names = [name for choices in wanted.values() for name in choices]
    names += [name.replace("vllm:", "vllm_") for name in names]
    series = engines.of_series(evidence, key).filter(pl.col("metric").is_in(names))
    tracks = read_tracks(evidence, series)
    columns: dict[str, Track] = {}
    for signal, choices in wanted.items():
        for name in choices:
            track = next((t for t in tracks if t.metric == name and t.times.size > 1), None)
            if track is not None:
                columns[signal] = track
                break
    if not columns:
        return None
    times = np.unique(np.concatenate([track.times for track in columns.values()]))
    laid = {
        signal: np.interp(times, track.times, _unreset(signal, track.values), np.nan, np.nan)
        for signal, track in columns.items()
    }
    return Reported(times, laid)


def _unreset(signal: str, values: np.ndarray) -> np.ndarray:
    if not signal.endswith("_tokens"):
        return values
    steps = np.diff(values, prepend=values[:1])
    steps = np.where(steps < 0, values, steps)
    total: np.ndarray = np.cumsum(steps)
    return total
