"""What was never observed of an engine keeps it from being called healthy."""

import pytest

from forensics.pipeline.judge import judge_engine
from tests.attribution.hand_made import halves, make_timeline
from tests.attribution.test_attribute import traffic


@pytest.mark.parametrize(("preempted", "named"), [(20.0, ("kv_usage",)), (0.0, ())])
def test_preemptions_of_a_pool_that_nobody_watched(preempted, named):
    columns = traffic(hit=(0.8, 0.8)) | {"preemptions": halves(0.0, preempted)}
    del columns["kv_usage"]
    timeline = make_timeline(columns)
    assert judge_engine(timeline, (timeline,)).unseen == named
