"""What was never observed of an engine keeps it from being called healthy."""

import pytest

from forensics.pipeline.judge import judge_engine, reserve
from forensics.timeline import Mark
from tests.attribution.hand_made import START_S, STEP_S, halves, make_timeline
from tests.attribution.test_attribute import traffic


@pytest.mark.parametrize(("preempted", "named"), [(20.0, ("kv_usage",)), (0.0, ())])
def test_preemptions_of_a_pool_that_nobody_watched(preempted, named):
    columns = traffic(hit=(0.8, 0.8)) | {"preemptions": halves(0.0, preempted)}
    del columns["kv_usage"]
    timeline = make_timeline(columns)
    assert judge_engine(timeline, (timeline,)).unseen == named


@pytest.mark.parametrize(
    ("running", "marks", "named"),
    [
        (
            4.0,
            (),
            ("the end of the server's log (its scrapes failed while requests were running)",),
        ),
        (4.0, ("stop",), ()),
        (4.0, ("engine_dead",), ()),
        (0.0, (), ()),
    ],
    ids=["at work", "stopped", "died", "idle"],
)
def test_scrapes_that_fail_to_the_end_are_no_health(running, marks, named):
    idle = {"generation_tokens", "prompt_tokens", "queries", "hits", "finished", "first_tokens"}
    columns = traffic(hit=(0.8, 0.8))
    columns["running"] = halves(4.0, running)
    if not running:
        columns |= {name: halves(100.0, 0.0) for name in idle & columns.keys()}
    end = START_S + STEP_S * 40
    timeline = make_timeline(
        columns,
        marks=(
            Mark(end + 1.0, "unanswered", "scrapes fail from here on", None),
            *(Mark(end, kind, kind, None) for kind in marks),
        ),
    )
    assert judge_engine(timeline, (timeline,)).unseen == named


@pytest.mark.parametrize(("before", "seconds"), [(20.0, 300.0), (0.5, None)])
def test_a_pause_amid_steady_traffic_is_said(before, seconds):
    """Twenty points of 15 s without anything; ten requests before and after may be chance."""
    quiet = [*([before] * 20), *([0.0] * 20), *([before] * 20)]
    columns = {
        name: [value * each for value in quiet]
        for name, each in {"first_tokens": 1.0, "prompt_tokens": 500.0, "running": 0.2}.items()
    }
    columns |= {"generation_tokens": [value * 100.0 for value in quiet], "waiting": [0.0] * 60}
    columns["hit_rate"] = [0.8] * 60
    said = reserve(make_timeline(columns))
    assert (said.values["seconds"] if said else None) == seconds
