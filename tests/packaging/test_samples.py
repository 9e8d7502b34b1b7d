"""Every sample gets the verdict that its `expected.json` states, and says where it comes from."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from forensics import analyze

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/expected.json"))
_ONSET_S = 30.0


def test_there_are_samples_and_each_folder_is_one():
    assert 2 <= len(NAMES) <= 4
    assert sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_expected_verdict(name):
    expected = json.loads((SAMPLES / name / "expected.json").read_text("utf-8"))
    analysis = analyze([str(SAMPLES / name)])
    verdict = analysis.verdict
    assert verdict.cause == expected["cause"]
    assert expected["rule_id"] in {item.rule_id for item in analysis.findings}
    began = datetime.fromisoformat(expected["began"]).timestamp()
    start, end = verdict.onset
    assert start - _ONSET_S <= began <= end + _ONSET_S
    assert analysis.engines[0].epochs[-1].vllm_version == expected["vllm_version"]
    found = {item.cause for item in analysis.findings if item.confidence >= 0.5}
    assert set(expected["also_found"]) <= found
    assert not set(expected["never_found"]) & found
    assert analysis.ceilings[0].max_num_seqs is not None


@pytest.mark.parametrize("name", NAMES)
def test_origin_is_told(name):
    text = (SAMPLES / "README.md").read_text("utf-8")
    assert f"| `{name}` |" in text


def test_samples_are_small():
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_log_of_a_sample_is_understood(name):
    log = next(f for f in analyze([str(SAMPLES / name)]).files if f.path.endswith("server.log"))
    assert log.damaged == 0
    assert log.unknown <= 0.05 * (log.matched + log.ignored)
