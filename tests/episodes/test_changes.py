"""All that changed on one engine: one fall is one, however it shows; chance is kept apart."""

import numpy as np
import polars as pl
import pytest

from forensics.diary import EngineDiary, Epoch
from forensics.episodes import changes_of
from forensics.timeline import EngineTimeline, Mark
from forensics.timeline.grid import SCHEMA

STEP, COUNT = 10.0, 80


def timeline(rate, counted=None, requests=100.0, marks=(), **columns) -> EngineTimeline:
    data = {name: np.full(COUNT, np.nan) for name in SCHEMA} | {
        "time": 1000.0 + STEP * np.arange(COUNT),
        "elapsed_s": np.full(COUNT, STEP),
        "hit_rate": rate,
        "hit_weight": np.full(COUNT, 20_000.0),
        "counter_hit_rate": rate if counted is None else counted,
        "queries": np.full(COUNT, 20_000.0),
        "first_tokens": np.full(COUNT, requests),
        **columns,
    }
    grid = pl.DataFrame(data, schema=SCHEMA).with_columns(pl.all().fill_nan(None))
    diary = EngineDiary("0", None, "0", (Epoch(None, None),))
    return EngineTimeline("0", None, STEP, grid, grid, {}, tuple(marks), diary)


def halves(before: float, after: float) -> np.ndarray:
    return np.repeat([before, after], COUNT // 2)


def test_one_fall_seen_by_requests_counters_and_an_event_is_one():
    reset = Mark(1000.0 + STEP * (COUNT // 2 - 0.5), "reset", "prefix cache reset", None)
    found = changes_of(timeline(halves(0.8, 0.3), marks=[reset]))
    assert [fall.signal for fall in found.falls] == ["hit_rate"]
    assert found.doubtful == ()
    assert found.slow is None


def test_a_fall_of_the_counters_alone_is_one_too():
    found = changes_of(timeline(np.full(COUNT, 0.8), counted=halves(0.8, 0.3)))
    assert [fall.signal for fall in found.falls] == ["counter_hit_rate"]


def test_what_a_few_requests_make_by_chance_is_doubtful():
    found = changes_of(timeline(halves(0.7, 0.5), requests=1.0))
    assert found.falls == ()
    (doubtful,) = found.doubtful
    assert doubtful.before - doubtful.level == pytest.approx(0.2)


def test_requests_that_became_slow_beside_hits_that_held():
    found = changes_of(timeline(np.full(COUNT, 0.8), ttft_s=halves(0.2, 2.0)))
    assert found.falls == ()
    assert found.slow is not None
    assert found.slow.signal == "ttft_s"
