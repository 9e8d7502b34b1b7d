"""Timelines made by hand: one row per scrape, whatever a test needs to be so."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from forensics.diary import EngineDiary, Epoch, KvPool, Version
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline, Histogram, Mark, Origin
from forensics.timeline.records import SIGNALS

STEP_S = 15.0
START_S = 1_000_000.0


def grid_of(columns: Mapping[str, Sequence[float]], count: int) -> pl.DataFrame:
    times = START_S + STEP_S * np.arange(1, count + 1)
    data: dict[str, object] = {"time": times, "elapsed_s": np.full(count, STEP_S)}
    for name in SIGNALS:
        values = columns.get(name)
        data[name] = [None] * count if values is None else [float(v) for v in values]
    schema = {name: pl.Float64() for name in ("time", "elapsed_s", *SIGNALS)}
    return pl.DataFrame(data, schema=schema)


def make_timeline(
    columns: Mapping[str, Sequence[float]],
    marks: tuple[Mark, ...] = (),
    histograms: Mapping[str, Histogram] | None = None,
    versions: tuple[str, ...] = ("0.32.0",),
    pool_tokens: int = 100_000,
) -> EngineTimeline:
    count = len(next(iter(columns.values())))
    grid = grid_of(columns, count)
    pool = KvPool(tokens=pool_tokens, blocks=pool_tokens // 16, block_size=16)
    epochs = tuple(
        Epoch(
            start=None if index == 0 else START_S + STEP_S * (count // 2) + 1.0,
            end=None,
            version=Version.parse(version),
            generation="V1",
            pool=pool,
        )
        for index, version in enumerate(versions)
    )
    origins = {name: Origin("metrics", 0, f"vllm:{name}") for name in columns}
    return EngineTimeline(
        engine="0",
        instance=None,
        step_s=STEP_S,
        grid=grid,
        log_grid=grid.clear(),
        origins=origins,
        marks=marks,
        diary=EngineDiary("0", None, "0", epochs),
        histograms=histograms or {},
    )


def halves(before: float, after: float, count: int = 40) -> list[float]:
    """A level in the first half, another in the second."""
    return [before] * (count // 2) + [after] * (count - count // 2)


def fall_of(timeline: EngineTimeline, before: float, level: float, **changes: object) -> Episode:
    """The fall in the middle of a hand-made timeline."""
    count = timeline.grid.height
    middle = START_S + STEP_S * (count // 2)
    end = START_S + STEP_S * count
    fields: dict[str, object] = {
        "engine": "0",
        "signal": "hit_rate",
        "onset": (middle, middle + STEP_S),
        "end": end,
        "recovered": False,
        "baseline": Span(START_S, middle),
        "after": Span(middle, end),
        "before": before,
        "level": level,
        "error": 0.01,
    }
    fields.update(changes)
    return Episode(**fields)  # type: ignore[arg-type]


def traffic(hit=(0.8, 0.4), prompt=(1000.0, 1000.0), running=(8.0, 8.0), usage=(0.3, 0.3)):
    """Ten requests per scrape; tokens by source."""
    requests = 10.0
    prompts = halves(*(requests * p for p in prompt))
    rate = halves(*hit)
    return {
        "hit_rate": rate,
        "hit_weight": prompts,
        "prompt_tokens": prompts,
        "cached_tokens": [p * r for p, r in zip(prompts, rate, strict=True)],
        "computed_tokens": [p * (1 - r) for p, r in zip(prompts, rate, strict=True)],
        "generation_tokens": [requests * 200.0] * 40,
        "first_tokens": [requests] * 40,
        "finished": [requests] * 40,
        "running": halves(*running),
        "waiting": [0.0] * 40,
        "kv_usage": halves(*usage),
        "preemptions": [0.0] * 40,
        "queries": prompts,
        "hits": [p * r for p, r in zip(prompts, rate, strict=True)],
        "counter_hit_rate": rate,
    }


def unobserved(timeline):
    """A NaN was not observed."""
    return replace(timeline, grid=timeline.grid.with_columns(pl.all().fill_nan(None)))
