"""Metrics of a part of the time beside a log of all of it, and a log all on one line."""

import json

import pytest

from forensics import analyze

BREAK = 1795973578.0  # the hit rate of the recording breaks at 17:32:58Z


@pytest.fixture(scope="module")
def cliff(corpus):
    return corpus / "b-preemption-cliff-v032"


def dump(cliff, path, until):
    answer = json.loads((cliff / "metrics" / "query_range.json").read_text())
    for series in answer["data"]["result"]:
        series["values"] = [point for point in series["values"] if point[0] < until]
    path.write_text(json.dumps(answer))
    return str(path)


def test_metrics_that_end_before_the_incident_do_not_hide_it(cliff, tmp_path):
    early = dump(cliff, tmp_path / "metrics.json", BREAK - 20)
    analysis = analyze([early, str(cliff / "server.log")])
    assert analysis.verdict.cause == "insufficient-evidence"
    assert analysis.verdict.onset[1] >= BREAK


def test_one_metric_that_ends_early_does_not_replace_the_log(cliff, tmp_path):
    whole = (cliff / "metrics" / "query_range.json").read_bytes()
    (tmp_path / "metrics.json").write_bytes(whole[:1000])
    log = str(cliff / "server.log")
    alone, both = analyze([log]), analyze([str(tmp_path / "metrics.json"), log])
    assert both.verdict.cause == alone.verdict.cause == "insufficient-evidence"
    assert both.verdict.runner_up.cause == "kv-capacity-queueing"
    (read,) = [file for file in both.files if file.path.endswith("metrics.json")]
    assert read.damaged == 1


def test_line_ends_do_not_change_who_stopped_first(cliff, tmp_path):
    log = (cliff / "server.log").read_bytes()
    (tmp_path / "server.log").write_bytes(log.replace(b"\n", b"\r"))
    assert analyze([str(tmp_path)]).verdict == analyze([str(cliff / "server.log")]).verdict
