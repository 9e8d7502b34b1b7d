"""The logged prompt throughput, as the release that printed it counts."""

import numpy as np
import pytest

from forensics.diary import EngineDiary, Epoch, Version
from forensics.timeline.logs import columns_from_log
from forensics.timeline.prompt_meaning import add_computed


def epoch(release, start=None, generation="V1"):
    return Epoch(start, None, version=Version.parse(release) if release else None,
                 generation=generation)  # fmt: skip


def computed(evidence_of, *epochs):
    events = [
        (at, "stats_periodic", {"prompt_tps": 1000.0, "prefix_hit_rate_pct": 75.0})
        for at in (0.0, 10.0, 20.0, 30.0)
    ]
    evidence = evidence_of(events=events)
    columns = columns_from_log(evidence.events, evidence.sources)
    add_computed(columns, EngineDiary("0", None, "0", epochs))
    return columns.get("computed_tokens")[1:]


def test_from_0_16_only_computed_tokens_are_printed(evidence_of):
    assert computed(evidence_of, epoch("0.16.0")).tolist() == [10_000.0] * 3


def test_before_the_hits_are_in_it(evidence_of):
    assert computed(evidence_of, epoch("0.15.1")).tolist() == [2_500.0] * 3


@pytest.mark.parametrize("one", [epoch(None), epoch("0.8.5", generation="V0")])
def test_nothing_is_made_up_where_it_is_not_known(evidence_of, one):
    assert np.isnan(computed(evidence_of, one)).all()


def test_a_log_that_mixes_two_releases_is_read_as_two(evidence_of):
    both = (epoch("0.15.1"), epoch("0.16.0", start=15.0))
    assert computed(evidence_of, *both).tolist() == [2_500.0, 10_000.0, 10_000.0]
