"""Findings as JUnit XML: one test case per finding, so that any CI system shows them.

A finding of severity `info` is a passed case with its message as output; a run without findings is
one passed case, since several systems take an empty suite for a failure.
"""

import re
from collections.abc import Sequence

from forensics.ci_formats.interface import Finding, RuleInfo

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(findings: Sequence[Finding], rules: Sequence[RuleInfo], version: str) -> str:
    """Return one document with one suite."""
    del rules, version  # the format has no place for them
    failures = sum(finding.severity != "info" for finding in findings)
    cases = [_case(finding) for finding in findings] or [
        '    <testcase classname="forensics" name="no findings"/>'
    ]
    head = f'name="forensics" tests="{len(cases)}" failures="{failures}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {head}>",
            f'  <testsuite {head} errors="0" skipped="0">',
            *cases,
            "  </testsuite>",
            "</testsuites>\n",
        ]
    )


def _case(finding: Finding) -> str:
    place = finding.place
    where = "analysis" if place is None else f"{place.file}:{place.line}:{place.column}"
    name = f"{finding.rule.id} {finding.rule.name} at {where}"
    attributes = (
        f"classname={_attribute(place.file if place else 'analysis')} name={_attribute(name)}"
    )
    if place is not None:
        attributes += f' file={_attribute(place.file)} line="{place.line}"'
    if finding.severity == "info":
        body = f"<system-out>{_text(finding.message)}</system-out>"
    else:
        shown = finding.message if place is None else f"{finding.message}\n{place.text}"
        body = (
            f"<failure type={_attribute(finding.severity)} message={_attribute(finding.message)}>"
            f"{_text(shown)}</failure>"
        )
    return f"    <testcase {attributes}>\n      {body}\n    </testcase>"


def _text(value: str) -> str:
    # The standard library's escaping lives in a module that imports an HTTP client.
    value = _NOT_XML.sub("\ufffd", value)
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(value: str) -> str:
    value = _text(value).replace('"', "&quot;")
    return '"' + value.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;") + '"'
