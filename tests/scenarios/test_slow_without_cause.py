"""Hits are fine, requests are slow, no rule fires: that is said, in parts, and is not health."""

import pytest

from forensics import Options
from forensics.catalog.messages import render
from forensics.pipeline import analyze


def test_front_end_that_holds_requests_back(server) -> None:
    slow = server().during(600, 1201, ttft=3.0)
    analysis = analyze([slow.write()], Options(slo_ttft_s=1.0))
    verdict = analysis.verdict
    assert verdict.cause == "insufficient-evidence"
    assert verdict.summary.key == "verdict.slow_outside"
    assert "rose from 200 ms to 3 s" in render(verdict.summary)
    assert verdict.onset is not None
    assert 0.0 < verdict.onset[1] - verdict.onset[0] <= 15.0  # one scrape
    assert analysis.impact.ttft_s is not None
    assert analysis.impact.ttft_s.after == pytest.approx(3.0, rel=0.05)
    assert analysis.impact.slo_minutes == pytest.approx(10.0, abs=0.3)
    assert analysis.impact.grew is None
    # The charts shade it like a fall.
    (shaded,) = analysis.tracks[0].episodes
    assert shaded == (verdict.onset[0], analysis.window[1], "ttft_s")


def test_prefill_that_became_slow(server) -> None:
    slow = server().during(600, 1201, ttft=3.0, prefill=2.9)
    analysis = analyze([slow.write()])
    assert analysis.verdict.summary.key == "verdict.slow_prefill"
    assert "prefill grew most, from 150 ms to 2.9 s" in render(analysis.verdict.summary)
    assert analysis.impact.grew == "prefill"
    assert analysis.impact.slo_minutes is None


def test_tokens_that_come_slower(server) -> None:
    slow = server().during(600, 1201, itl=0.2)
    assert analyze([slow.write()]).verdict.summary.key == "verdict.slow_decode"


def test_a_queue_with_a_known_cause_keeps_its_name(server) -> None:
    slots = server().always(running=4, usage=0.03, requests=1.0)
    slots.during(300, 1201, waiting=12, queue=9.0, ttft=9.0)
    analysis = analyze([slots.write()])
    assert analysis.verdict.cause == "seat-limit"
    assert analysis.impact.grew == "queue"


def test_healthy_server_tells_how_long_it_missed_its_target(server) -> None:
    """No incident, and yet a target that was too tight all along: twenty minutes outside it."""
    analysis = analyze([server().write()], Options(slo_ttft_s=0.1))
    assert analysis.verdict.cause == "healthy"
    assert analysis.impact.slo_minutes == pytest.approx(20.0, abs=0.3)
