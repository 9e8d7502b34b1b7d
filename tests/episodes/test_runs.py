import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.episodes import runs


def found(pattern, **how):
    holds = np.array([char == "#" for char in pattern])
    return runs(10.0 * np.arange(holds.size), holds, 10.0, **how)


def test_a_run_has_an_onset_between_two_points():
    (run,) = found("...#####..")
    assert run.onset == (20.0, 30.0)
    assert run.end == 70.0
    assert not run.open_ended
    assert run.seconds == 50.0  # from the last point before, as the samples behind it reach back
    assert (run.baseline.start, run.baseline.end) == (-10.0, 20.0)


def test_short_runs_are_left_out():
    assert found("...##....") == []


def test_a_short_break_does_not_end_a_run():
    (run,) = found("..###..###..")
    assert (run.first, run.last) == (2, 9)


def test_a_long_break_ends_it():
    first, second = found("..###......###..")
    assert (first.last, second.first) == (4, 11)
    assert second.baseline.start == first.end


def test_run_that_was_there_from_the_start_has_no_baseline():
    (run,) = found("####....")
    assert run.onset == (0.0, 0.0)
    assert run.baseline is None
    assert run.inside.start == -10.0


def test_run_that_goes_on_to_the_end():
    (run,) = found("....####")
    assert run.open_ended


def test_nothing_holds():
    assert found("........") == []


@given(st.lists(st.booleans(), max_size=60))
def test_runs_do_not_overlap_and_begin_and_end_inside(holds):
    result = runs(10.0 * np.arange(len(holds)), np.array(holds, bool), 10.0)
    for run in result:
        assert holds[run.first]
        assert holds[run.last]
        assert run.inside.start <= run.onset[1] <= run.end
    assert all(a.last < b.first for a, b in itertools.pairwise(result))
