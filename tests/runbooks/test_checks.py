"""Every check against its cases: what it must find, to the character, and where it stays silent.

`checks/<ID>.yaml` holds `fail` and `pass` cases: `text` (of a Markdown file unless `file` says
otherwise), `version` and `engine` of the target; a `fail` case lists in `found` the characters each
finding stands on, with `fix` what is to be written there.
"""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from forensics.runbooks.checks import CHECKS
from forensics.runbooks.linting import Request, lint_text, recorded_metrics
from forensics.runbooks.settings import Settings

FOLDER = Path(__file__).parent / "checks"
TODAY = date(2026, 11, 29)


def cases(kind: str) -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [
            pytest.param(path.stem, case, id=f"{path.stem}-{case['name']}")
            for case in document[kind]
        ]
    return found


def findings_of(rule: str, case: dict[str, Any]) -> list[Any]:
    settings = Settings().with_values(
        tuple(
            (key, case[key])
            for key in ("vllm-version", "engine", "gpu", "known-metrics", "disable")
            if key in case
        ),
        "case",
    )
    request = Request(settings, None, TODAY)
    path = case.get("file", "runbook.md")
    recorded = recorded_metrics([case["text"]], settings)
    result = lint_text(path, case["text"], request, recorded)
    return [one.finding for one in result.findings if one.finding.rule.id == rule]


@pytest.mark.parametrize(("rule", "case"), cases("fail"))
def test_finds(rule: str, case: dict[str, Any]) -> None:
    found = findings_of(rule, case)
    assert [one.place.text for one in found] == [wanted["at"] for wanted in case["found"]]
    for one, wanted in zip(found, case["found"], strict=True):
        if wanted.get("computed"):
            assert one.replacement and "--max-num-seqs" in one.replacement
        else:
            assert one.replacement == wanted.get("fix")
        if "severity" in wanted:
            assert one.severity == wanted["severity"]
        if "says" in wanted:
            assert wanted["says"] in one.message


@pytest.mark.parametrize(("rule", "case"), cases("pass"))
def test_stays_silent(rule: str, case: dict[str, Any]) -> None:
    assert findings_of(rule, case) == []


def test_every_check_has_cases_of_both_kinds() -> None:
    for check in CHECKS:
        document = yaml.safe_load((FOLDER / f"{check.id}.yaml").read_text(encoding="utf-8"))
        assert document["fail"] and document["pass"], check.id


def test_ids_and_names_are_unique_and_in_order() -> None:
    ids = [check.id for check in CHECKS]
    assert ids == sorted(set(ids))
    assert len({check.name for check in CHECKS}) == len(CHECKS)
