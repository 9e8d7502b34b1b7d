"""Further recordings of released servers (0.13 to 0.32), made after the rules: what may be said.

Each was recorded as those of the corpus were (a tiny model on a CPU, a real Prometheus). With
metrics the verdict is the cause, or an abstention where counters do not decide; on the log alone
it may always be an abstention, and a healthy one where nothing in the log can show the cause.
"""

import json
import tarfile
from pathlib import Path

import pytest

from forensics import analyze
from forensics.reports.text import TextStyle, render

# What was done → the right answers with metrics, and on the log alone.
RIGHT = {
    "a-healthy-wobble-v032": ({"healthy"}, {"healthy"}),
    "b-users-preempt-v0271": ({"preemption-cliff"}, set()),
    "c-users-evict-v032": ({"eviction-pressure", "insufficient-evidence"}, set()),
    "d-head-unique-v032": ({"prefix-diversity-loss"}, set()),
    "e-half-oneoff-v0271": ({"prefix-diversity-loss", "insufficient-evidence"}, set()),
    "f-tenants-v032": ({"eviction-pressure", "insufficient-evidence"}, set()),
    # The smaller pool keeps the hits low after the cold minutes.
    "g-restart-small-v0271": ({"eviction-pressure", "cold-cache"}, {"cold-cache"}),
    "h-reset-v032": ({"cold-cache"}, {"cold-cache"}),
    "i-queue-v0271": ({"seat-limit"}, {"seat-limit"}),
    "j-aborts-v032": ({"client-aborts"}, {"healthy"}),
    "k-hog-v032": ({"long-context-hog"}, {"long-context-hog"}),
    "l-storm-over-v032": ({"preemption-cliff"}, set()),
    "m-longer-v0271": ({"prefix-diversity-loss"}, set()),
    # The clients of the stalled engine gave up: nothing that waited was answered later.
    "n-stall-v032": ({"healthy", "engine-stall"}, {"healthy"}),
    "n2-stallwait-v032": ({"engine-stall"}, {"healthy"}),
    "o-crash-v032": ({"engine-crash"}, {"engine-crash"}),
    "o2-crash-v0271": ({"engine-crash"}, {"engine-crash"}),
    "q-batch-joins-v0271": ({"prefix-diversity-loss", "insufficient-evidence"}, set()),
    "u-creep-v0271": ({"eviction-pressure", "insufficient-evidence"}, set()),
    "v-outputs-grow-v0271": ({"preemption-cliff"}, set()),
    "2b-load-up-fine-v0271": ({"healthy"}, {"healthy"}),
    # Preempted in numbers, and the shared prompt stays pinned.
    "2c-thrash-noloss-v0202": ({"preemption-thrash"}, set()),
    "2d-new-template-v0202": ({"healthy"}, {"healthy"}),
    "2f-caching-off-v0202": ({"caching-disabled"}, {"caching-disabled"}),
    # Hits were on their way down before the restart that raised max_num_seqs; see below.
    "2g-seqs-raised-v0202": ({"insufficient-evidence"}, set()),
    "2j-div-recovers-v013": ({"prefix-diversity-loss"}, set()),
    "2k-zipf-steady-v0202": ({"healthy"}, {"healthy"}),
    "2l-onoff-v0202": ({"healthy"}, {"healthy"}),
    "2m-prefill-v0202": ({"prefix-diversity-loss"}, {"prefill-bound"}),
    "2o-div-then-preempt-v032": ({"prefix-diversity-loss"}, set()),
    "2q-evict-recover-v0202": ({"eviction-pressure", "insufficient-evidence"}, set()),
    "2r-rejected-v0202": ({"healthy"}, {"healthy"}),
    "2t-restart-same-v013": ({"cold-cache"}, {"cold-cache"}),
    "2u-seqs-lowered-v032": ({"seat-limit"}, {"seat-limit"}),
}


@pytest.fixture(scope="module")
def further(tmp_path_factory):
    folder = tmp_path_factory.mktemp("further")
    with tarfile.open(Path(__file__).with_name("further.tar.xz")) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_the_verdict_with_metrics_and_on_the_log_alone(further, name):
    right, on_log = RIGHT[name]
    log, metrics = (str(further / name / file) for file in ("server.log", "query_range.json"))
    assert analyze([log, metrics]).verdict.cause in right
    assert analyze([log]).verdict.cause in on_log | {"insufficient-evidence"}


def test_an_engine_that_stood_still_unseen_is_not_surely_healthy(further):
    """Nothing was answered for 75 s amid 25 requests a second: that is said."""
    verdict = analyze([str(further / "n-stall-v032" / "query_range.json")]).verdict
    assert (verdict.confidence, verdict.summary.key) == (0.75, "verdict.healthy_paused")
    assert verdict.summary.values["seconds"] == pytest.approx(75.0, abs=4.0)


def test_scrapes_that_failed_to_the_end_are_no_health(further):
    """The process was killed; Prometheus went on asking, and its `up` says so."""
    verdict = analyze([str(further / "o2-crash-v0271" / "query_range.json")]).verdict
    assert verdict.cause == "insufficient-evidence"
    assert any("scrapes failed" in name for name in verdict.missing)


def test_a_regime_beside_an_undecided_fall_is_seen_at_once(further):
    """134 preemptions since a restart; the fall that the verdict is about came before it."""
    folder = further / "2g-seqs-raised-v0202"
    analysis = analyze([str(folder / "server.log"), str(folder / "query_range.json")])
    (found,) = [item for item in analysis.findings if item.cause == "preemption-thrash"]
    assert found.onset is not None
    events = json.loads((folder / "truth.json").read_text("utf-8"))["events"]
    restarted = max(time for time, event in events if event == "server_start")
    assert found.onset[0] - 10.0 < restarted < found.onset[1] < restarted + 60.0
    assert {item.note.key for item in found.exhibits if item.note} >= {"note.regime"}
    page = render(analysis, TextStyle())
    assert page.index("ALSO OBSERVED\n  KV202 preemption-thrash") < page.index("\nSIGNALS")
