"""SARIF against its schema, JUnit as XML, GitHub commands by its escaping rules."""

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from forensics.ci_formats import github, junit, sarif
from forensics.ci_formats.interface import Finding, Place, RuleInfo

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
RENAMED = RuleInfo("RB103", "metric-renamed", "An old name.", "critical", "docs/rules/RB103.md")
CLIFF = RuleInfo("PC101", "preemption-cliff", "The pool ran out.", "warning", "docs/rules/PC101.md")
HOSTILE = 'a < b & "c" \x1b[31m\x00 % one\ntwo, 캐시: 100%'


def finding(**changes: object) -> Finding:
    values: dict[str, object] = {
        "rule": RENAMED,
        "severity": "critical",
        "message": "The old name is gone.",
        "place": Place("docs/run book.md", 3, 5, 3, 9, "old!"),
        "replacement": "new!",
        "fingerprint": "0123456789abcdef",
    }
    return Finding(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def findings() -> list[Finding]:
    return [
        finding(),
        finding(severity="info", message=HOSTILE, replacement=None),
        finding(place=Place("a.yaml", 1, 1, 4, 2, "x\ny"), severity="warning", replacement=""),
        finding(rule=CLIFF, place=None, replacement=None, severity="warning"),
    ]


def test_sarif_is_valid(findings: list[Finding]) -> None:
    document = json.loads(sarif.render(findings, [RENAMED, CLIFF], "0.1.0"))
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    run = document["runs"][0]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0, 0, 1]
    assert [result["level"] for result in run["results"]] == ["error", "note", "warning", "warning"]
    first = run["results"][0]
    location = first["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "docs/run%20book.md"
    assert location["region"] == {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}
    replacement = first["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replacement["insertedContent"]["text"] == "new!"
    assert "locations" not in run["results"][3]


def test_the_schema_would_complain(findings: list[Finding]) -> None:
    document = json.loads(sarif.render(findings, [RENAMED, CLIFF], "0.1.0"))
    document["runs"][0]["results"][0]["level"] = "critical"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(document)


def test_sarif_without_findings_is_valid() -> None:
    document = json.loads(sarif.render([], [RENAMED], "0.1.0"))
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    assert document["runs"][0]["results"] == []


def test_junit(findings: list[Finding]) -> None:
    root = ElementTree.fromstring(junit.render(findings, [], "0.1.0").encode())
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("4", "3")
    cases = suite.findall("testcase")
    assert cases[0].get("name") == "RB103 metric-renamed at docs/run book.md:3:5"
    assert cases[0].get("line") == "3"
    assert cases[1].find("failure") is None
    told = cases[1].findtext("system-out")
    assert told is not None and 'a < b & "c"' in told and "\x00" not in told
    assert cases[3].get("classname") == "analysis"


def test_junit_without_findings_is_one_passed_case() -> None:
    root = ElementTree.fromstring(junit.render([], [], "0.1.0").encode())
    assert root.get("tests") == "1" and root.get("failures") == "0"


def test_github(findings: list[Finding]) -> None:
    lines = github.render(findings, [], "0.1.0").splitlines()
    assert lines[0] == (
        "::error file=docs/run book.md,line=3,endLine=3,col=5,endColumn=9,"
        "title=RB103 metric-renamed::The old name is gone."
    )
    assert lines[1].startswith("::notice ") and "%25 one%0Atwo, 캐시: 100%25" in lines[1]
    assert "col=" not in lines[2]
    assert lines[3] == "::warning title=PC101 preemption-cliff::The old name is gone."


def test_github_escapes_properties() -> None:
    odd = finding(place=Place("a,b:c%.md", 1, 1, 1, 2, "x"))
    assert "file=a%2Cb%3Ac%25.md," in github.render([odd], [], "0.1.0")
