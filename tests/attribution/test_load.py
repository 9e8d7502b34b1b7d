"""Load that rose before the hits fell, and hits that held meanwhile."""

import numpy as np
import pytest

from forensics.attribution import attribute
from tests.attribution.hand_made import fall_of, make_timeline, traffic, unobserved


def heard(running, *, creeping=False, **changes):
    columns = traffic(hit=(0.8, 0.4)) | {"running": running}
    if creeping:
        columns["hit_rate"] = [0.8] * 20 + list(np.linspace(0.8, 0.0, 20))
    timeline = make_timeline(columns, **changes)
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    return {witness.name: witness for witness in found.witnesses}


def test_hits_that_hold_while_more_load_turns_the_pool_over_and_then_creep_down():
    # Load rises with the 13th scrape, hits break after the 20th. In between 8 scrapes write 10 x
    # 200 computed and 10 x 200 generated tokens each; 70,000 tokens are free.
    witnesses = heard([8.0] * 12 + [40.0] * 28, creeping=True)
    rise, held = witnesses["load_rise"], witnesses["hits_held"]
    assert (rise.before, rise.after) == (8.0, 40.0)
    assert rise.value == pytest.approx(np.log(41 / 9))
    assert held.value == pytest.approx(8 * 4000 / 70_000)
    sooner = heard([8.0] * 12 + [40.0] * 28, creeping=True, pool_tokens=40_000)
    assert sooner["hits_held"].value == 1.0
    assert sooner["hits_held"].log_odds > 0.5


def test_hits_that_held_and_then_broke_at_once_were_not_evicted():
    # The first three scrapes of the fall write 10 x 600 + 10 x 200 tokens each into 70,000: what
    # was evicted in them is a third at most.
    held = heard([8.0] * 12 + [40.0] * 28)["hits_held"]
    assert held.value == pytest.approx(8 * 4000 / 70_000 * 3 * 8000 / 70_000)
    assert held.log_odds < 0


@pytest.mark.parametrize(
    ("running", "pool"),
    [
        ([8.0] * 40, 100_000),  # load stayed
        ([8.0] * 6 + [40.0] * 34, 5_000),  # long ago: 14 scrapes turned the pool over 16 times
        ([8.0, 16.0] * 20, 100_000),  # it wanders
    ],
)
def test_load_that_did_not_rise_before_the_fall(running, pool):
    witnesses = heard(running, pool_tokens=pool)
    assert witnesses["load_rise"].value == 0.0
    assert witnesses["load_rise"].log_odds < 0
    assert "hits_held" not in witnesses


def test_usage_that_was_not_watched_of_late_is_taken_from_before():
    # As above, but the pool was last looked at ten scrapes and more before the hits broke.
    columns = traffic(hit=(0.8, 0.4)) | {"running": [8.0] * 6 + [40.0] * 34}
    columns["kv_usage"] = [0.3] * 9 + [np.nan] * 31
    timeline = unobserved(make_timeline(columns, pool_tokens=5_000))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert {w.name: w.value for w in found.witnesses}["load_rise"] == 0.0


def test_a_queue_that_is_seen_late_is_no_rise_of_load():
    columns = traffic(hit=(0.8, 0.4)) | {"waiting": [np.nan] * 10 + [30.0] * 30}
    timeline = unobserved(make_timeline(columns))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert {w.name: w.value for w in found.witnesses}["load_rise"] == 0.0


@pytest.mark.parametrize("calm", [19, 20])
def test_hits_were_not_seen_to_hold_within_one_scrape(calm):
    witnesses = heard([8.0] * calm + [40.0] * (40 - calm))
    assert witnesses["load_rise"].value > 1.0
    assert witnesses["hits_held"].value == 0.0
