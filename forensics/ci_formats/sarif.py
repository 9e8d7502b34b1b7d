"""Findings as SARIF 2.1.0, the format code-scanning services read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import json
from collections.abc import Sequence
from urllib.parse import quote

from forensics.ci_formats.interface import Finding, Place, RuleInfo, Severity

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: dict[Severity, str] = {"info": "note", "warning": "warning", "critical": "error"}


def render(findings: Sequence[Finding], rules: Sequence[RuleInfo], version: str) -> str:
    """Return one SARIF log with one run."""
    index = {rule.id: position for position, rule in enumerate(rules)}
    driver: Json = {
        "name": "forensics",
        "version": version,
        "rules": [_rule(rule) for rule in rules],
    }
    run: Json = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index) for finding in findings],
    }
    document: Json = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: RuleInfo) -> Json:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": f"See {rule.page}."},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: dict[str, int]) -> Json:
    result: dict[str, Json] = {
        "ruleId": finding.rule.id,
        "ruleIndex": index.get(finding.rule.id, -1),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "partialFingerprints": {"forensics/v1": finding.fingerprint},
    }
    if finding.place is not None:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(finding.place),
                    "region": _region(finding.place),
                }
            }
        ]
        if finding.replacement is not None:
            change: Json = {
                "artifactLocation": _artifact(finding.place),
                "replacements": [
                    {
                        "deletedRegion": _region(finding.place),
                        "insertedContent": {"text": finding.replacement},
                    }
                ],
            }
            result["fixes"] = [
                {"description": {"text": "Replace"}, "artifactChanges": [change]},
            ]
    return result


def _artifact(place: Place) -> Json:
    return {"uri": quote(place.file, safe="/")}


def _region(place: Place) -> Json:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
