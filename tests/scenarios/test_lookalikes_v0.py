"""The look-alikes on V0: lifetime averages, sampled warnings, swapping, and no hit rate at all."""

from dataclasses import dataclass

import pytest

from forensics.pipeline import analyze
from tests.scenarios.v0_server import V0Server

_NOTHING = ("healthy", "insufficient-evidence")


@dataclass(frozen=True)
class Left:
    """What was left behind."""

    log: bool
    metrics: bool


@pytest.fixture(params=[(True, True), (True, False), (False, True)], ids=["both", "log", "metrics"])
def left(request):
    """Give each of: log and metrics, the log alone, the metrics alone."""
    return Left(*request.param)


@pytest.fixture
def old(tmp_path, left):
    """Make V0 servers, scraped every 15 s where there is no log."""

    def make(**settings):
        step = 5.0 if left.log else 15.0
        return V0Server(tmp_path / "incident", **{"step": step, **settings})

    return make


@pytest.fixture
def verdict_of(left):
    """Analyse what a server left."""

    def judged(server):
        return analyze([server.write(log=left.log, metrics=left.metrics)]).verdict

    return judged


@pytest.mark.parametrize("release", ["0.6.3", "0.8.5"])
@pytest.mark.parametrize("noise", [0.03, 0.15])
def test_stationary_noise_is_healthy(old, verdict_of, release, noise) -> None:
    server = old(version=release, noise=noise, hit_noise=noise / 2)
    assert verdict_of(server).cause == "healthy"


@pytest.mark.parametrize("release", ["0.4.2", "0.6.3"])
def test_an_idle_server_is_healthy(old, verdict_of, release) -> None:
    server = old(version=release).always(requests=0, running=0, usage=0)
    assert verdict_of(server).cause == "healthy"


@pytest.mark.parametrize("release", ["0.4.2", "0.6.3", "0.8.5"])
def test_caching_is_off_by_default(old, verdict_of, left, release) -> None:
    verdict = verdict_of(old(version=release, prefix_caching=False).always(hit=0))
    assert verdict.cause == "caching-disabled"
    assert verdict.missing == ()
    if left.log:
        assert verdict.summary.key == "PC105.engine"


def test_a_storm_that_never_changes_is_a_state(old, verdict_of) -> None:
    """From the log alone the warnings for the 1st, 51st … of 360 preemptions tell."""
    server = old().always(preempted=0.3, running=80, waiting=30, usage=0.99, ttft=8.0, hit=0.3)
    verdict = verdict_of(server)
    assert verdict.cause == "preemption-thrash"
    assert verdict.end is None


def test_requests_swapped_out_before_any_line_told_of_preemption(old, verdict_of) -> None:
    """0.4.2 has neither warning, counter nor hit rate: only the swapped requests tell."""
    server = old(version="0.4.2")
    server.during(500, 800, running=80, waiting=30, usage=0.99, ttft=8.0, swapped=12)
    verdict = verdict_of(server)
    assert verdict.cause == "preemption-thrash"
    assert verdict.missing == ("a hit rate (prefix-cache counters, or stats lines that print one)",)


def test_a_restart_is_a_cold_cache_and_not_a_lower_average(old, verdict_of) -> None:
    server = old().during(560, 700, hit=0.2).restart(560, 40)
    verdict = verdict_of(server)
    assert verdict.cause == "cold-cache"
    assert 545 <= verdict.onset[1] - server.t0 <= 625


@pytest.mark.parametrize("release", ["0.4.2", "0.6.3"])
def test_nothing_runs_and_requests_wait_is_a_stall(old, verdict_of, release) -> None:
    server = old(version=release).during(600, 1201, requests=0, running=0, usage=0, waiting=9)
    assert verdict_of(server).cause == "engine-stall"


@pytest.mark.parametrize("release", ["0.4.2", "0.6.3"])
def test_all_seats_are_taken_in_a_roomy_pool(old, verdict_of, release) -> None:
    server = old(version=release, max_num_seqs=64)
    server.during(300, 1201, running=64, waiting=12, ttft=9.0)
    assert verdict_of(server).cause == "seat-limit"


def test_one_request_holds_three_quarters_of_the_pool(old, verdict_of) -> None:
    hog = old(max_model_len=400_000).always(running=6, requests=1.5)
    hog.during(500, 800, usage=0.98, running=2, waiting=8, requests=0.4, ttft=20.0)
    assert verdict_of(hog).cause == "long-context-hog"


def test_hits_that_vanish_are_never_called_eviction_or_healthy(old, verdict_of) -> None:
    verdict = verdict_of(old().during(600, 1201, hit=0.0, ttft=0.5))
    assert verdict.cause == "insufficient-evidence"


def test_a_few_requests_name_nothing(old, verdict_of) -> None:
    thin = old(hit_noise=0.0).always(requests=0, running=0, usage=0)
    for index, at in enumerate(range(40, 1200, 97)):
        thin.during(at, at + 15, requests=0.1, running=1, usage=0.004, hit=0.9 * (index % 2))
    assert verdict_of(thin).cause in _NOTHING
