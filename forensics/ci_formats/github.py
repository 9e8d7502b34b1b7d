"""Findings as GitHub workflow commands, which the runner turns into annotations on the diff.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from collections.abc import Sequence

from forensics.ci_formats.interface import Finding, RuleInfo, Severity

_COMMANDS: dict[Severity, str] = {"info": "notice", "warning": "warning", "critical": "error"}


def render(findings: Sequence[Finding], rules: Sequence[RuleInfo], version: str) -> str:
    """Return one command per line."""
    del rules, version  # the format has no place for them
    return "".join(_command(finding) for finding in findings)


def _command(finding: Finding) -> str:
    properties = [f"title={_property(f'{finding.rule.id} {finding.rule.name}')}"]
    place = finding.place
    if place is not None:
        properties = [
            f"file={_property(place.file)}",
            f"line={place.line}",
            f"endLine={place.end_line}",
            *properties,
        ]
        if place.line == place.end_line:  # columns are only understood within one line
            properties[3:3] = [f"col={place.column}", f"endColumn={place.end_column}"]
    return f"::{_COMMANDS[finding.severity]} {','.join(properties)}::{_data(finding.message)}\n"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
