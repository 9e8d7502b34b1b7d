"""A lasting rise of a latency is found where it is felt, and noise is not one."""

import numpy as np
import polars as pl
import pytest

from forensics.diary import EngineDiary, Epoch
from forensics.episodes.latency import latency_episode
from forensics.timeline import EngineTimeline
from forensics.timeline.grid import SCHEMA


def timeline(**columns) -> EngineTimeline:
    count = len(next(iter(columns.values())))
    times = 1000.0 + 10.0 * np.arange(count)
    data = {name: np.full(count, np.nan) for name in SCHEMA}
    data |= {"time": times, "elapsed_s": np.full(count, 10.0), **columns}
    grid = pl.DataFrame(data, schema=SCHEMA).with_columns(pl.all().fill_nan(None))
    diary = EngineDiary("0", None, "0", (Epoch(None, None),))
    return EngineTimeline("0", None, 10.0, grid, grid, {}, (), diary)


def noisy(level: np.ndarray, spread: float = 0.2) -> np.ndarray:
    return level * np.exp(np.random.default_rng(3).normal(0.0, spread, level.size))


def test_a_tenfold_time_to_first_token_from_the_sixtieth_scrape_on():
    level = np.repeat([0.2, 2.0], 60)
    found = latency_episode(timeline(ttft_s=noisy(level), first_tokens=np.full(120, 20.0)))
    assert found is not None
    assert found.signal == "ttft_s"
    assert found.onset == (1590.0, 1600.0)
    assert found.before == pytest.approx(0.2, rel=0.1)
    assert found.level == pytest.approx(2.0, rel=0.1)
    assert not found.recovered
    assert found.requests_after == 60 * 20.0


def test_a_rise_that_came_back_ends():
    level = np.repeat([0.2, 2.0, 0.2], 40)
    found = latency_episode(timeline(ttft_s=noisy(level), first_tokens=np.full(120, 20.0)))
    assert found is not None
    assert found.recovered
    assert found.end == 1000.0 + 79 * 10.0


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.2, 0.2), (0.2, 0.3), (0.01, 0.05)],
    ids=["noise", "half as much again", "five times nearly nothing"],
)
def test_what_nobody_feels_is_no_rise(low, high):
    level = np.repeat([low, high], 60)
    weights = np.full(120, 20.0)
    assert latency_episode(timeline(ttft_s=noisy(level), first_tokens=weights)) is None


def test_one_slow_request_is_no_level():
    level = np.repeat([0.2, 9.0], [110, 10])
    weights = np.repeat([20.0, 1.0], [110, 10])
    assert latency_episode(timeline(ttft_s=noisy(level), first_tokens=weights)) is None


def test_tokens_that_come_slower_are_a_rise_of_their_own():
    found = latency_episode(
        timeline(
            ttft_s=noisy(np.full(120, 0.2)),
            first_tokens=np.full(120, 20.0),
            itl_s=noisy(np.repeat([0.02, 0.09], 60)),
            generation_tokens=np.full(120, 4000.0),
        )
    )
    assert found is not None
    assert (found.signal, found.onset) == ("itl_s", (1590.0, 1600.0))
