"""Falls of the hit rate from counters: what is one, where it begins, how deep it is."""

import numpy as np
import pytest

from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary
from forensics.episodes import hit_rate_episodes
from forensics.timeline.build import build_engine

STEP, TOKENS = 10.0, 20_000.0


@pytest.fixture
def falls_of(evidence_of):
    """Find falls in counters that grow at the given interval rates."""

    def found(rates, *, weights=None, resets=(), labels=({},), order=1, requests=20.0):
        rates = np.asarray(rates, float)
        weights = np.full(rates.size, TOKENS) if weights is None else np.asarray(weights, float)
        rows = []
        for number, names in enumerate(labels):
            part = 1.0 / len(labels) if number else 1.0 - (len(labels) - 1) / len(labels)
            for metric, steps in (
                ("vllm:prefix_cache_queries_total", weights),
                ("vllm:prefix_cache_hits_total", weights * rates),
                ("vllm:time_to_first_token_seconds_count", np.full(rates.size, requests)),
            ):
                so_far = np.concatenate(([0.0], np.cumsum(steps * part)))
                for at in resets:
                    so_far[at + 1 :] -= so_far[at]
                points = [(1e9 + STEP * index, value) for index, value in enumerate(so_far)]
                rows.append((metric, dict(names), points))
        evidence = evidence_of(rows[::order])
        engines = map_engines(evidence)
        (key,) = engines.keys
        diary = write_diary(evidence, engines, key, Options())
        return hit_rate_episodes(build_engine(evidence, engines, key, diary))

    return found


def noisy(levels, count=40, spread=0.02, seed=0):
    rng = np.random.default_rng(seed)
    rates = np.concatenate([level + spread * rng.standard_normal(count) for level in levels])
    return np.clip(rates, 0.0, 1.0)


def test_fall_with_its_levels_and_its_onset(falls_of):
    (fall,) = falls_of(noisy([0.8, 0.3]))
    assert fall.before == pytest.approx(0.8, abs=0.01)
    assert fall.level == pytest.approx(0.3, abs=0.01)
    assert fall.onset == (1e9 + 400.0, 1e9 + 410.0)
    assert fall.onset[1] - fall.onset[0] == STEP
    assert not fall.recovered
    assert fall.end == 1e9 + 800.0
    assert fall.requests_after == 40 * 20.0


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_fall(falls_of, seed):
    assert falls_of(noisy([0.7], 100, 0.05, seed)) == ()


def test_small_fall_below_the_noise_limit_is_none(falls_of):
    assert falls_of(noisy([0.80, 0.77], 60, 0.005)) == ()


@pytest.mark.parametrize(("requests", "found"), [(2.0, 0), (10.0, 1)])
def test_small_fall_needs_the_requests_to_carry_it(falls_of, requests, found):
    # 0.92 to 0.84 is 3 errors of a binomial from about 300 requests on each side.
    assert len(falls_of(noisy([0.92, 0.84], 40, 0.005), requests=requests)) == found


@pytest.mark.parametrize(("requests", "found"), [(10.0, 0), (16.0, 1)])
def test_small_dip_that_comes_back_needs_more_requests(falls_of, requests, found):
    # 0.92 to 0.84 is 3.5 errors of a binomial from 400 requests on each side, 4.4 from 640.
    assert len(falls_of(noisy([0.92, 0.84, 0.92], 40, 0.005), requests=requests)) == found


def test_rise_is_no_fall(falls_of):
    assert falls_of(noisy([0.3, 0.8])) == ()


def test_fall_that_comes_back_ends_there(falls_of):
    (fall,) = falls_of(noisy([0.8, 0.3, 0.8]))
    assert fall.recovered
    assert fall.end == pytest.approx(1e9 + 800.0, abs=2 * STEP)


def test_two_falls_apart_are_two(falls_of):
    first, second = falls_of(noisy([0.8, 0.5, 0.2], 30))
    assert first.level == pytest.approx(0.5, abs=0.02)
    assert second.before == pytest.approx(0.5, abs=0.02)
    assert second.level == pytest.approx(0.2, abs=0.02)


def test_change_that_works_its_way_through_is_one(falls_of):
    ramp = np.linspace(0.78, 0.32, 8)
    (fall,) = falls_of(np.concatenate([noisy([0.8]), ramp, noisy([0.3])]))
    assert fall.onset[1] <= 1e9 + STEP * 46
    assert fall.level == pytest.approx(0.3, abs=0.03)


def test_too_few_requests_prove_nothing(falls_of):
    assert falls_of(noisy([0.8, 0.3], 20), requests=0.1) == ()


def test_a_handful_of_points_proves_nothing(falls_of):
    assert falls_of([0.8, 0.8, 0.3, 0.3]) == ()


def test_resets_between_points_change_nothing(falls_of):
    rates = noisy([0.8, 0.3])
    (plain,) = falls_of(rates)
    # The grid marks a counter reset as a restart and averages nothing across it, so the reset lies
    # where the levels change.
    (reset,) = falls_of(rates, resets=[40])
    assert reset.before == pytest.approx(plain.before, abs=0.005)
    assert reset.level == pytest.approx(plain.level, abs=0.005)
    assert abs(reset.onset[1] - plain.onset[1]) <= STEP


@pytest.mark.parametrize("order", [1, -1])
def test_label_sets_in_any_number_and_order_give_the_same(falls_of, order):
    rates = noisy([0.8, 0.3])
    (one,) = falls_of(rates)
    parts = [{"pid": "1"}, {"pid": "2"}, {"pid": "3"}]
    (several,) = falls_of(rates, labels=parts, order=order)
    assert several.onset == one.onset
    assert several.before == pytest.approx(one.before)
    assert several.level == pytest.approx(one.level)


def test_unit_of_lookups_changes_nothing(falls_of):
    rates = noisy([0.8, 0.3])
    (tokens,) = falls_of(rates, weights=np.full(80, 16 * 1000.0))
    (blocks,) = falls_of(rates, weights=np.full(80, 1000.0))
    assert (tokens.onset, tokens.end) == (blocks.onset, blocks.end)
    assert tokens.level == pytest.approx(blocks.level)


def test_idle_time_in_between_is_no_fall(falls_of):
    rates = noisy([0.8], 80)
    weights = np.full(80, TOKENS)
    weights[30:50] = 0.0
    assert falls_of(rates, weights=weights) == ()


def test_no_lookups_at_all(falls_of):
    assert falls_of(np.zeros(30), weights=np.zeros(30)) == ()


@pytest.mark.parametrize("half", [0.3, 0.45, 0.6])
def test_an_interval_on_its_way_down_does_not_make_the_onset_early(falls_of, half):
    # The shortest piece takes three thin intervals of the old level along with the half-way one.
    rates = [*([0.83, 0.84] * 15), 0.835, 0.834, 0.84, half, *([0.0] * 30)]
    weights = [9000.0] * 30 + [900.0, 1500.0, 2200.0, 5000.0] + [17_000.0] * 30
    (fall,) = falls_of(rates, weights=weights)
    begins = 1e9 + STEP * 34  # the end of the half-way interval
    assert fall.onset[0] < begins - 1.0
    assert begins - 1.0 <= fall.onset[1] <= begins + 1.0
