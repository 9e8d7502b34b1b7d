"""ENG501 engine-stall: engine_stall.yaml, and silences that requests had waited through."""

import numpy as np
import pytest

from forensics.pipeline.judge import judge_engine
from forensics.timeline import Histogram
from tests.attribution.hand_made import START_S, STEP_S, make_timeline

EDGES = np.array([1.0, 40.0, 80.0, 160.0, 320.0, np.inf])


def test_engine_stall(rule_case):
    rule_case.holds()


@pytest.mark.parametrize(
    ("first", "stalled"),
    [
        ([39, 39, 39, 39, 40, 40], True),  # one of forty waited 160 to 320 s of the 300
        ([0, 40, 40, 40, 40, 40], False),  # all came late and were slow: a burst after a pause
        ([39, 39, 39, 40, 40, 40], False),  # one took up to 160 s, perhaps less than the half
    ],
    ids=["waited", "burst", "slow"],
)
def test_an_empty_server_whose_next_requests_had_waited(first, stalled):
    """Twenty points of 15 s show nothing."""
    traffic = [*([40.0] * 20), *([0.0] * 20), *([40.0] * 20)]
    columns = {
        name: [value * each for value in traffic]
        for name, each in {"first_tokens": 1, "prompt_tokens": 500, "running": 0.2}.items()
    }
    columns |= {"generation_tokens": [value * 100 for value in traffic], "waiting": [0.0] * 60}
    columns |= {"hit_rate": [0.8] * 60, "kv_usage": [0.3 * (value > 0) for value in traffic]}
    counts = np.array([[value] * 6 for value in traffic])
    counts[40] = first
    times = START_S + STEP_S * np.arange(1, 61)
    waits = Histogram(EDGES, times, counts, "vllm:time_to_first_token_seconds")
    timeline = make_timeline(columns, histograms={"ttft_s": waits})
    found = [
        item.opinion
        for item in judge_engine(timeline, (timeline,)).judged
        if item.opinion.cause == "engine-stall"
    ]
    assert bool(found) is stalled
    if stalled:
        assert found[0].summary.key == "ENG501.waited"
        assert found[0].onset == (times[19], times[20])
        assert found[0].end == times[39]
