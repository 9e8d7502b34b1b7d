"""Pieces of constant level: hand-computed levels, and silence on noise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.episodes.segments import noise_per_weight, segments


def noisy(levels, count, spread, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([level + spread * rng.standard_normal(count) for level in levels])


def test_two_levels_are_two_pieces_with_their_weighted_means():
    rate = np.array([0.8] * 10 + [0.3] * 10)
    weight = np.array([1000.0] * 19 + [9000.0])
    rate[-1] = 0.305
    first, second = segments(rate, weight)
    assert (first.first, first.last, second.first, second.last) == (0, 9, 10, 19)
    assert first.mean == pytest.approx(0.8)
    assert second.mean == pytest.approx((9 * 0.3 * 1000 + 0.305 * 9000) / 18000)
    assert second.weight == 18000.0


def test_error_is_of_the_mean():
    rate, weight = noisy([0.7], 400, 0.05), np.full(400, 1000.0)
    (piece,) = segments(rate, weight)
    # 0.05 per point over 400 points: 0.0025.
    assert piece.error == pytest.approx(0.0025, rel=0.25)


@pytest.mark.parametrize("seed", range(20))
def test_noise_gives_one_piece(seed):
    rate = noisy([0.7], 120, 0.05, seed)
    assert len(segments(rate, np.full(120, 5000.0))) == 1


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_very_uneven_traffic_gives_one_piece(seed):
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(8.0, 1.5, 150)
    rate = 0.6 + rng.standard_normal(150) * 0.05 * np.sqrt(np.median(weight) / weight)
    assert len(segments(rate, weight)) == 1


def test_step_is_found_where_it_is():
    rate = noisy([0.8, 0.6], 60, 0.04)
    first, second = segments(rate, np.full(120, 5000.0))
    assert abs(second.first - 60) <= 2
    assert first.mean - second.mean == pytest.approx(0.2, abs=0.02)


def test_noise_estimate_does_not_take_a_step_for_noise():
    flat = noise_per_weight(noisy([0.8], 100, 0.03), np.full(100, 1000.0))
    step = noise_per_weight(noisy([0.8, 0.2], 50, 0.03), np.full(100, 1000.0))
    assert step == pytest.approx(flat, rel=0.35)


def test_long_series_is_folded_and_still_covered():
    rate = noisy([0.8, 0.4], 2000, 0.03)
    pieces = segments(rate, np.full(4000, 1000.0))
    assert len(pieces) == 2
    assert abs(pieces[1].first - 2000) <= 8


def test_nothing_has_no_pieces():
    assert segments(np.array([]), np.array([])) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 80), st.integers(0, 1000), st.integers(1, 6))
def test_pieces_cover_all_points_in_order(count, seed, steps):
    rng = np.random.default_rng(seed)
    rate = np.clip(np.repeat(rng.random(steps), 20)[:count], 0, 1)
    rate = np.resize(rate, count) + 0.02 * rng.standard_normal(count)
    pieces = segments(rate, rng.lognormal(6, 0.5, count))
    assert pieces[0].first == 0
    assert pieces[-1].last == count - 1
    assert all(a.last + 1 == b.first for a, b in itertools.pairwise(pieces))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 100.0), st.integers(0, 100))
def test_unit_of_the_weight_does_not_matter(scale, seed):
    """Lookups count tokens in one release and blocks in another: the same pieces come out."""
    rate = noisy([0.8, 0.5], 30, 0.03, seed)
    weight = np.random.default_rng(seed).lognormal(8, 0.5, 60)
    ends = [piece.last for piece in segments(rate, weight)]
    assert [piece.last for piece in segments(rate, weight * scale)] == ends
