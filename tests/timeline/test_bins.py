import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.timeline.bins import (
    bin_index,
    bin_times,
    fitted,
    growth,
    last_values,
    true_step,
)
from forensics.timeline.recordings import Track, spacing

NAN = float("nan")


def track(times, values):
    return Track(
        "vllm:generation_tokens_total",
        {},
        None,
        np.array(times, float),
        np.array(values, float),
        1,
        "vllm:generation_tokens_total",
    )


def test_spacing_is_the_usual_step_and_not_the_gap():
    assert spacing(np.array([0.0, 15.0, 30.0, 45.0, 345.0, 360.0])) == 15.0


def test_spacing_is_a_step_that_occurs():
    assert spacing(np.array([0.0, 15.0, 45.0])) == 15.0


def test_spacing_of_one_point_is_zero():
    assert spacing(np.array([7.0])) == 0.0


def test_step_finer_than_the_scrapes_is_corrected():
    # A range query with step 5 s over scrapes every 15 s repeats each value three times.
    times = np.arange(0, 300, 5.0)
    values = np.floor(times / 15.0) * 100.0
    assert true_step(5.0, track(times, values)) == 15.0


def test_idle_server_does_not_change_the_step():
    times = np.arange(0, 300, 5.0)
    values = np.where(times < 30, times, np.where(times > 200, times, 30.0))
    assert true_step(5.0, track(times, values)) == 5.0


def test_points_fall_into_the_nearest_bin():
    index = bin_index(np.array([-8.0, 0.0, 7.4, 7.6, 31.0]), 0.0, 15.0, 3)
    assert index.tolist() == [-1, 0, 0, 1, 2]


def test_bins_reach_from_first_to_last_point():
    assert bin_times(100.0, 131.0, 15.0).tolist() == [100.0, 115.0, 130.0]


def test_last_value_of_a_bin_stays_and_gaps_are_null():
    laid = last_values(track([0, 1, 2, 9], [5, 6, 7, 8]), 0.0, 3.0, 4)
    assert laid[0] == 6.0  # 0 and 1 fall into bin 0, 2 into bin 1
    assert laid[1] == 7.0
    assert np.isnan(laid[2])
    assert laid[3] == 8.0


def test_growth_over_a_gap_is_the_whole_growth():
    amounts, resets = growth(np.array([10.0, NAN, NAN, 40.0]), np.array([True, False, False, True]))
    assert np.isnan(amounts[0])
    assert amounts[3] == 30.0
    assert not resets.any()


def test_reset_grows_by_its_new_value():
    amounts, resets = growth(np.array([10.0, 25.0, 4.0, 9.0]), np.ones(4, bool))
    assert amounts[1:].tolist() == [15.0, 4.0, 5.0]
    assert resets.tolist() == [False, False, True, False]


def test_series_that_appears_later_grew_from_zero():
    # request_success_total{finished_reason="abort"} exists from its first event on.
    amounts, _ = growth(np.array([NAN, NAN, 3.0, 5.0]), np.ones(4, bool))
    assert np.isnan(amounts[0])
    assert amounts[1:].tolist() == [0.0, 3.0, 2.0]


def test_series_never_seen_stays_unknown():
    amounts, resets = growth(np.full(3, NAN), np.ones(3, bool))
    assert np.isnan(amounts).all()
    assert not resets.any()


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=40),
    st.lists(st.integers(1, 39), max_size=4),
)
def test_growth_is_the_same_with_and_without_resets(steps, restarts):
    """A counter that restarts from zero between two points shows what it grew since the restart."""
    plain = np.cumsum(np.array(steps, float))
    shown, base = [], 0.0
    for index, value in enumerate(plain):
        if index in restarts:
            base = plain[index - 1]
        shown.append(value - base)
    shown = np.array(shown)
    amounts, _ = growth(shown, np.ones(shown.size, bool))
    expected = np.diff(plain)
    # A restart that leaves the value above the old one cannot be seen: nothing can tell it.
    seen = np.array(
        [i + 1 not in restarts or shown[i + 1] < shown[i] for i in range(expected.size)]
    )
    assert amounts[1:][seen].tolist() == expected[seen].tolist()


def test_bins_that_are_few_enough_keep_their_step():
    assert fitted(np.array([130.0, 100.0, 115.0]), 15.0) == (100.0, 130.0, 15.0)


def test_stray_points_do_not_push_the_others_out():
    times = np.array([0.0, *(1.79e9 + 2.0 * np.arange(50)), 4.1e9])
    assert fitted(times, 2.0) == (1.79e9, 1.79e9 + 98.0, 2.0)


def test_more_points_than_bins_make_wider_bins():
    """A week in steps of 2 s has 302,400 points; in steps of 4 s they fit, to the last one."""
    times = 1.79e9 + 2.0 * np.arange(302_400)
    start, end, step = fitted(times, 2.0)
    assert step == 4.0
    assert bin_times(start, end, step)[-1] >= times[-1] - 4.0
