"""Runbooks, rules, dashboards and manifests with the mistakes that real ones have, and their twins.

`rotten/` holds them, in English and Korean, `expected.yaml` lists every mistake, `sound/` holds the
same documents put right, in which nothing may be found.
"""

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from forensics.catalog.metrics_catalog import families
from forensics.runbooks.checks import CHECKS
from forensics.runbooks.linting import Request, files, lint_files
from forensics.runbooks.mending import mend
from forensics.runbooks.settings import Settings

FOLDER = Path(__file__).parent / "realistic"
EXPECTED = yaml.safe_load((FOLDER / "expected.yaml").read_text(encoding="utf-8"))
REQUEST = Request(Settings(), None, date(2026, 11, 29))


def found(path: Path) -> list[list[object]]:
    (entry,) = lint_files([path], REQUEST).files
    return [
        [one.finding.rule.id, one.finding.place.line, _head(one.finding.place.text)]
        for one in entry.findings
        if one.finding.place is not None
    ]


def _head(text: str) -> str:
    return text.strip().split("\n")[0][:40]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_mistake_is_found(name: str) -> None:
    assert found(FOLDER / "rotten" / name) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_nothing_is_found_in_the_twin(name: str) -> None:
    assert found(FOLDER / "sound" / name) == []


def test_the_mistakes_are_of_many_kinds() -> None:
    kinds = {entry[0] for entries in EXPECTED.values() for entry in entries}
    missing = {check.id for check in CHECKS} - kinds
    # The rest needs a target of its own, or is about comments; each has cases in checks/.
    assert missing == {"RB105", "RB117", "RB210", "RB502", "RB902", "RB903"}


def test_mending_leaves_only_what_needs_a_person() -> None:
    paths = files([FOLDER / "rotten"], Settings())
    mended = {Path(one.path).name: one for one in mend(paths, REQUEST, lambda entry: entry)}
    assert mended["rules.yaml"].replacements == 3
    assert "vllm:inter_token_latency_seconds_bucket" in mended["rules.yaml"].after
    assert mended["kv-cache-runbook.md"].replacements == 4
    assert "| max_num_seqs | 47 |" not in mended["kv-cache-runbook.md"].after
    assert set(mended) == {
        "rules.yaml",
        "kv-cache-runbook.md",
        "dashboard.json",
        "triage.sh",
        "정전-런북.md",
    }


def test_sound_documents_name_only_metrics_that_exist() -> None:
    names = {name for entry in families().values() for name in (entry.name, *entry.samples)}
    names |= {"vllm:prefix_hit_ratio", "vllm:ttft_p95"}  # recorded in sound/rules.yaml
    for path in (FOLDER / "sound").iterdir():
        found_names = re.findall(r"vllm:[a-z][a-z0-9_]*_\w+", path.read_text(encoding="utf-8"))
        assert set(found_names) <= names, path.name
