"""Analysis → the neutral findings of `forensics.ci_formats`: SARIF, JUnit, GitHub annotations.

A finding is placed at the first log line of its exhibits; figures from metrics have no line.
"""

import hashlib
from collections.abc import Sequence

from forensics.analysis import Analysis, Finding, Where
from forensics.ci_formats.interface import SEVERITIES, Place, RuleInfo, Severity
from forensics.ci_formats.interface import Finding as CiFinding
from forensics.reports.plain import plain, sentence
from forensics.reports.wording import named


def findings(analysis: Analysis, lang: str = "en") -> tuple[list[CiFinding], list[RuleInfo]]:
    """Turn findings into the neutral record, with the rules they are instances of."""
    rules: dict[str, RuleInfo] = {}
    made = []
    for item in analysis.findings:
        rule = rules.setdefault(item.rule_id, _rule(item, lang))
        made.append(_finding(item, rule, lang))
    return made, list(rules.values())


def _rule(item: Finding, lang: str) -> RuleInfo:
    page = f"docs/rules/{item.rule_id}-{item.cause}.md"
    about = named("cause", item.cause, lang)
    return RuleInfo(item.rule_id, item.cause, about, _severity(item.severity), page)


def _severity(text: str) -> Severity:
    return text if text in SEVERITIES else "warning"


def _finding(item: Finding, rule: RuleInfo, lang: str) -> CiFinding:
    identity = f"{item.rule_id}\0{item.engine}"
    return CiFinding(
        rule=rule,
        severity=_severity(item.severity),
        message=sentence(item.summary, lang),
        place=_place([exhibit.source for exhibit in item.exhibits]),
        replacement=None,
        fingerprint=hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32],
    )


def _place(sources: Sequence[Where | None]) -> Place | None:
    for where in sources:
        if where is not None and where.line is not None:
            text = plain(where.text or "")
            file = plain(where.file.replace("\\", "/"))
            return Place(file, where.line, 1, where.line, len(text) + 1, text)
    return None
