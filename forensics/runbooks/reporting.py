"""A run as text with carets, or as JSON."""

import json
import unicodedata
from pathlib import Path

from forensics.ci_formats.interface import Finding, Severity
from forensics.runbooks.linting import LintResult, read_text
from forensics.runbooks.text import Lines

_SCHEMA_VERSION = 1
_COLOURS: dict[Severity, str] = {"info": "36", "warning": "33", "critical": "31"}
_MAX_SHOWN = 160
"""Characters of a source line that are shown around the finding."""

Json = str | int | None | list["Json"] | dict[str, "Json"]


def text(result: LintResult, *, colour: bool) -> str:
    """Return the findings with their lines, a caret under each, and a closing sentence."""
    parts: list[str] = []
    for entry in result.files:
        lines = Lines(read_text(Path(entry.path))) if entry.findings else None
        parts.extend(_shown(located.finding, lines, colour=colour) for located in entry.findings)
    parts.append(_summary(result))
    return "\n".join(parts) + "\n"


def _shown(finding: Finding, lines: Lines | None, *, colour: bool) -> str:
    place = finding.place
    rule = f"{finding.rule.id} {finding.rule.name}"
    head = f"{finding.severity}: {rule}"
    if colour:
        head = f"\x1b[1;{_COLOURS[finding.severity]}m{head}\x1b[0m"
    if place is None or lines is None:
        return f"{head}\n  {visible(finding.message)}\n"
    where = visible(f"{place.file}:{place.line}:{place.column}")
    out = [f"{where}: {head}"]
    source = lines.line(min(place.line, len(lines))).text
    first = place.column - 1
    last = place.end_column - 1 if place.end_line == place.line else len(source)
    last = max(min(last, len(source)), first + 1)
    cut = max(0, min(first - _MAX_SHOWN // 4, len(source) - _MAX_SHOWN))
    shown = source[cut : cut + _MAX_SHOWN]
    mark = f"{'^' * _width(shown[first - cut : last - cut])}" or "^"
    number = str(place.line)
    lead = "…" if cut else ""
    out.append(f"  {number} | {lead}{visible(shown)}")
    pad = " " * (len(lead) + _width(shown[: first - cut]))
    out.append(f"  {' ' * len(number)} | {pad}{mark or '^'}")
    out.append(f"  {visible(finding.message)}")
    if finding.replacement is not None and "\n" not in finding.replacement:
        out.append(f"  --fix writes: {visible(finding.replacement)}")
    return "\n".join(out) + "\n"


def _summary(result: LintResult) -> str:
    findings = result.findings
    count = len(findings)
    files = len(result.files)
    told = f"{count} finding{'' if count == 1 else 's'} in {files} file{'' if files == 1 else 's'}"
    fixable = sum(finding.replacement is not None for finding in findings)
    extra = [f"{fixable} that --fix mends"] if fixable else []
    snoozed = sum(len(entry.snoozed) for entry in result.files)
    extra += [f"{snoozed} snoozed"] if snoozed else []
    extra += [f"{result.baselined} in the baseline"] if result.baselined else []
    return told + (f" ({', '.join(extra)})" if extra else "") + "."


def visible(value: str) -> str:
    """Return text fit for a terminal: control characters and bad bytes as escapes."""
    return "".join(
        char
        if char.isprintable()
        else " "
        if char == "\t"
        else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in value
    )


def _width(value: str) -> int:
    """Columns a text takes on a terminal; Hangul and other wide characters take two."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in visible(value)
    )


def as_json(result: LintResult, version: str) -> str:
    """Return the document that `--format json` prints."""
    files: list[Json] = [_clean(entry.path) for entry in result.files]
    document: Json = {
        "schema_version": _SCHEMA_VERSION,
        "tool": {"name": "forensics", "version": version},
        "files": files,
        "findings": [_record(finding) for finding in result.findings],
        "snoozed": [
            {**_record(one.finding), "until": one.until.isoformat(), "reason": _clean(one.reason)}
            for entry in result.files
            for one in entry.snoozed
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _record(finding: Finding) -> dict[str, Json]:
    place = finding.place
    return {
        "rule_id": finding.rule.id,
        "name": finding.rule.name,
        "severity": finding.severity,
        "message": _clean(finding.message),
        "file": None if place is None else _clean(place.file),
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "end_line": None if place is None else place.end_line,
        "end_column": None if place is None else place.end_column,
        "text": None if place is None else _clean(place.text),
        "replacement": None if finding.replacement is None else _clean(finding.replacement),
    }


def _clean(value: str) -> str:
    """Replace bytes that were no UTF-8, which no JSON text can hold."""
    return value.encode("utf-8", "replace").decode("utf-8")
