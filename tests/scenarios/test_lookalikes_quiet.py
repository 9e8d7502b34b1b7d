"""Look-alikes that are no incident, or too little to judge: nothing may be named."""

import numpy as np
import pytest

from forensics.pipeline import analyze

_NOTHING = ("healthy", "insufficient-evidence")


@pytest.mark.parametrize("seed", range(4))
def test_stationary_noise_is_healthy(server, seed) -> None:
    path = server(seed=seed, noise=0.15, hit_noise=0.07).write()
    assert analyze([path]).verdict.cause == "healthy"


def test_two_thirds_may_be_the_best_there_is(server) -> None:
    """Each third request must be cold: the rate is steady at 66 %, and low reuse it is not."""
    path = server(hit_noise=0.04).always(hit=0.66).write()
    analysis = analyze([path])
    assert analysis.verdict.cause == "healthy"
    assert not analysis.findings


def test_an_idle_server_is_healthy(server) -> None:
    path = server().always(requests=0, running=0, usage=0).write()
    assert analyze([path]).verdict.cause == "healthy"


def test_going_idle_is_no_stall(server) -> None:
    """Stats lines cease at INFO while probes are still answered."""
    quiet = server().during(600, 1201, requests=0, running=0, usage=0)
    for at in range(0, 1200, 10):
        quiet.access(at + 0.5, "/health", "200 OK", "GET")
    assert analyze([quiet.write(stamped=True)]).verdict.cause == "healthy"


def test_thin_traffic_names_nothing(server) -> None:
    """A dozen requests in twenty minutes, hit or miss as it comes."""
    thin = server(hit_noise=0.0).always(requests=0, running=0, usage=0)
    for index, at in enumerate(range(40, 1200, 97)):
        thin.during(at, at + 5, requests=0.2, running=1, usage=0.004, hit=0.9 * (index % 2))
    assert analyze([thin.write()]).verdict.cause in _NOTHING


def test_one_sample_is_too_little(server) -> None:
    analysis = analyze([server(seconds=10, step=10).write()])
    assert analysis.verdict.cause == "insufficient-evidence"
    assert any("samples" in name for name in analysis.verdict.missing)


def test_a_burst_caught_in_arrival_names_nothing(server) -> None:
    """The data end twenty seconds after sixty requests began to queue."""
    burst = server().during(1180, 1201, waiting=(5, 60), running=(20, 60), usage=(0.15, 0.6))
    assert analyze([burst.write()]).verdict.cause in _NOTHING


def test_help_lines_without_a_sample_say_what_is_missing(tmp_path) -> None:
    (tmp_path / "metrics.prom").write_text(
        "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
        "# TYPE vllm:num_requests_running gauge\n"
        "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.\n"
        "# TYPE vllm:kv_cache_usage_perc gauge\n"
    )
    analysis = analyze([str(tmp_path)])
    assert analysis.verdict.cause == "insufficient-evidence"
    assert any("samples" in name for name in analysis.verdict.missing)
    assert analysis.files[0].note is not None and "not one sample" in analysis.files[0].note


def test_more_load_with_unchanged_hits_is_healthy(server) -> None:
    """A higher batch alone is no incident while throughput grows with it."""
    grown = server().during(600, 1201, requests=8, running=32, usage=0.2)
    assert analyze([grown.write()]).verdict.cause == "healthy"


@pytest.mark.parametrize("shape", ["sine", "ramp", "bursts"])
def test_load_that_varies_with_what_the_engine_can_do_is_healthy(server, shape) -> None:
    """Requests, running and token times move together; now and then one request waits a moment."""
    varied = server(seconds=1800.0, noise=0.1)
    rng = np.random.default_rng(7)
    at = varied.times / varied.seconds
    load = {
        "sine": 1 + 0.5 * np.sin(2 * np.pi * at),
        "ramp": 0.5 + at,
        "bursts": 1.0 + (rng.random(at.size) < 0.08),
    }[shape]
    levels = varied.levels
    levels["requests"] = 4 * load
    levels["itl"] = 0.01 + 0.006 * load
    levels["running"] = rng.poisson(4 * load * 200 * levels["itl"]).astype(float)
    levels["usage"] = levels["running"] * 0.003 + 0.01
    levels["waiting"] = np.where(rng.random(at.size) < 0.05, 1.0, 0.0)
    analysis = analyze([varied.write()])
    assert analysis.verdict.cause == "healthy"
    assert not analysis.findings


@pytest.mark.parametrize("seed", range(4))
def test_the_printed_rate_wanders_while_few_requests_stand_behind_it(server, seed) -> None:
    """Stats lines alone: below 1,000 requests the rate is a mean over all of them so far."""
    path = server(seed=seed, hit_noise=0.08, noise=0.15).write(metrics=False)
    assert analyze([path]).verdict.cause == "healthy"


def test_a_printed_rate_that_falls_for_good_is_not_called_healthy(server) -> None:
    fallen = server().during(600, 1201, hit=0.1)
    assert analyze([fallen.write(metrics=False)]).verdict.cause != "healthy"
