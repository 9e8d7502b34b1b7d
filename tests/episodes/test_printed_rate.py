"""The printed hit rate: a fall of it, and what is none because the figure means something else."""

import numpy as np
import polars as pl
import pytest

from forensics.diary import EngineDiary, Epoch, Version
from forensics.episodes.printed_rate import LIFETIME, REQUESTS, STEPS, printed_fall, spans
from forensics.timeline import EngineTimeline, Mark
from forensics.timeline.grid import SCHEMA

STEP = 10.0


def epoch(version, start=None, generation="V1"):
    return Epoch(start, None, version=Version.parse(version), generation=generation)


def timeline(rates, *epochs, marks=()):
    times = STEP * np.arange(1, len(rates) + 1)
    data = dict.fromkeys(SCHEMA) | {"time": times, "logged_hit_rate": rates}
    grid = pl.DataFrame(data, schema=SCHEMA)
    diary = EngineDiary("0", None, None, epochs or (epoch("0.16.0"),))
    found = tuple(Mark(at, kind, kind, None) for at, kind in marks)
    return EngineTimeline("0", None, STEP, grid, grid, {}, found, diary)


@pytest.mark.parametrize(
    ("version", "generation", "span"),
    [
        ("0.6.2", "V0", LIFETIME),
        ("0.10.2", "V0", LIFETIME),
        ("0.7.3", "V1", STEPS),
        ("0.10.2", "V1", STEPS),
        ("0.11.0", "V1", REQUESTS),
        ("0.33.0", "V1", REQUESTS),
    ],
)
def test_what_the_figure_spans_is_the_releases_matter(version, generation, span):
    one = epoch(version, generation=generation)
    assert spans(one) == span
    fallen = np.r_[np.full(30, 0.8), np.linspace(0.8, 0.5, 30)]
    assert printed_fall(timeline(fallen, one)) == span
    assert printed_fall(timeline(np.full(60, 0.8), one)) is None


def test_a_step_where_the_definition_changed_is_no_fall():
    """0.8.5 prints blocks, 0.9.0 tokens: prompts of one block and a half hit two thirds as much."""
    rates = np.r_[np.full(30, 0.9), np.full(30, 0.6)]
    assert printed_fall(timeline(rates, epoch("0.8.5"), epoch("0.9.0", 305.0))) is None
    assert printed_fall(timeline(rates, epoch("0.9.1"), epoch("0.9.2", 305.0))) == STEPS


@pytest.mark.parametrize("kind", ["restart", "reset"])
def test_climbing_back_after_the_figure_began_anew_is_no_fall(kind):
    climbing = 0.8 * (1 - np.exp(-np.arange(60) / 8))
    rates = np.r_[np.full(30, 0.8), climbing]
    assert printed_fall(timeline(rates, marks=[(305.0, kind)])) is None
    assert printed_fall(timeline(rates)) == REQUESTS


def test_a_level_never_reached_again_after_a_restart_is_a_fall():
    rates = np.r_[np.full(30, 0.8), np.full(60, 0.5)]
    assert printed_fall(timeline(rates, marks=[(305.0, "restart")])) == REQUESTS


@pytest.mark.parametrize(
    "rates",
    [
        [0.814, 0.819, 0.824, 0.828, 0.831, 0.833, 0.780, 0.739, 0.696, 0.670, 0.638, 0.605, 0.579],
        [0.825, 0.834, 0.839, 0.844, 0.848, 0.852, 0.818, 0.797, 0.773, 0.751, 0.737, 0.722, 0.709],
    ],
    ids=["eviction of 0.8.5 at 5 s", "more users than fit, while the figure still climbed"],
)
def test_a_log_cut_out_shortly_before_the_fall_still_shows_it(rates):
    assert printed_fall(timeline(rates)) == REQUESTS


def test_the_mean_of_few_requests_wanders_without_a_fall():
    """Intervals of six requests, two thirds of them hits: 0.19 each way, nothing changes."""
    chance = np.random.default_rng(0).binomial(6, 0.667, (300, 40)) / 6
    figures = np.cumsum(chance, axis=1) / np.arange(1, 41)
    assert sum(printed_fall(timeline(rates)) is not None for rates in figures) <= 15


def test_the_mean_of_the_latest_requests_wanders_on_without_a_fall():
    """Twenty-five lines hold 1,000 requests; each interval differs by 0.08 from the next."""
    dice = np.random.default_rng(1)
    for fallen in (0.0, 0.3):
        each = 0.7 + 0.08 * dice.standard_normal((200, 150))
        each[:, 75:] -= fallen
        sums = np.cumsum(np.pad(each, ((0, 0), (1, 0))), axis=1)
        first = np.maximum(0, np.arange(1, 151) - 25)
        figures = (sums[:, 1:] - sums[:, first]) / (np.arange(1, 151) - first)
        found = sum(printed_fall(timeline(rates)) is not None for rates in figures)
        assert found <= 10 if not fallen else found == 200
