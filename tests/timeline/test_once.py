"""What is asked of one engine again and again is made once, and never of another."""

from dataclasses import replace

from forensics.attribution import figures
from forensics.episodes import Span
from tests.attribution.hand_made import START_S, STEP_S, make_timeline

SPAN = Span(START_S, START_S + 40 * STEP_S)


def test_it_is_made_at_the_first_asking():
    timeline = make_timeline({"running": [4.0] * 40})
    made = []
    for _ in range(2):
        assert timeline.once("key", lambda: made.append(1) or "made") == "made"
    assert made == [1]


def test_another_grid_window_or_pool_is_asked_anew():
    timeline = make_timeline({"running": [4.0] * 40})
    assert figures(timeline, SPAN) is figures(timeline, SPAN)
    assert figures(timeline, SPAN).running == 4.0
    other = replace(timeline, grid=make_timeline({"running": [6.0] * 40}).grid)
    assert figures(other, SPAN).running == 6.0
    assert figures(timeline, Span(START_S, START_S + 3 * STEP_S)).points == 3
    assert figures(timeline, SPAN, 1000.0) is not figures(timeline, SPAN)
