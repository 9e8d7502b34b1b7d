"""What a chart shows: the samples, not a start-up line of days before, and the incident in them."""

from dataclasses import replace

import pytest

from forensics.analysis import MarkView
from forensics.pipeline import analyze
from forensics.reports import timeline_chart


@pytest.fixture
def analysis(server):
    return analyze([server().during(600, 1201, ttft=3.0).write()])


def test_an_old_start_up_line_does_not_widen_the_chart(analysis) -> None:
    first, last = analysis.window
    old = replace(analysis, window=(first - 100_000.0, last))
    assert old.watched == analysis.watched
    assert old.watched[1] == last
    assert old.watched[0] >= first


def test_a_long_incident_is_shown_with_all_that_was_watched(analysis) -> None:
    assert analysis.focus == analysis.watched


def test_a_short_incident_is_shown_with_three_times_its_length_around(analysis) -> None:
    start = analysis.verdict.onset[0]
    brief = replace(analysis, verdict=replace(analysis.verdict, end=start + 60.0))
    assert brief.focus == (start - 180.0, start + 60.0 + 180.0)


def test_an_instant_is_enlarged_eight_times_at_most(analysis) -> None:
    start = analysis.verdict.onset[0]
    brief = replace(analysis, verdict=replace(analysis.verdict, end=start + 1.0))
    first, last = analysis.watched
    assert brief.focus[1] - brief.focus[0] == pytest.approx((last - first) / 8.0 + 1.0)


def test_without_an_incident_everything_is_shown(analysis) -> None:
    calm = replace(analysis, verdict=replace(analysis.verdict, onset=None))
    assert calm.focus == calm.watched


@pytest.mark.parametrize(("away", "drawn"), [(-100_000.0, False), (2.0, True)])
def test_a_start_up_line_of_days_before_is_not_drawn_a_crash_after_the_last_scrape_is(
    analysis, away, drawn
) -> None:
    first, last = analysis.watched
    at = (first if away < 0 else last) + away
    tracks = replace(analysis.tracks[0], marks=(MarkView(at, "start", "server start", None),))
    lines = timeline_chart.lines_for(analysis, tracks.engine)
    for whole in (None, (first, last)):
        spec = timeline_chart.timeline(tracks, (first, last), lines, "en", whole=whole)
        assert (str(round(at * 1000)) in str(spec)) is drawn
