"""The rules' docstrings as pages of the documentation, and the index of all causes.

`forensics explain ID` prints the same docstring; the page adds the thresholds with their sources,
which stand in the docstring of the rule's parameters.
"""

import inspect
import sys
from dataclasses import fields

from rules import RULES
from rules.interface import Params, Rule

HEADINGS = (
    "What it detects",
    "Why it matters",
    "Evidence it needs",
    "How it decides",
    "When it is silent",
    "False positives",
    "What to do",
    "Versions",
    "References",
)
"""What every rule's docstring holds, in this order."""
INDEX_OPEN = "<!-- causes -->"
INDEX_CLOSE = "<!-- /causes -->"
_ASKED = {
    "episode": "each fall of the hit rate",
    "window": "the window as a whole",
    "both": "each fall of the hit rate, and the window as a whole",
}


def pages() -> dict[str, str]:
    """Return the pages by file name."""
    return {f"{rule.id}-{rule.name}.md": page(rule) for rule in RULES}


def page(rule: Rule) -> str:
    """Return one page."""
    summary, parts = sections(rule)
    needs = (
        ", ".join(f"`{need}`".replace("|", "` or `") for need in rule.needs) or "nothing certain"
    )
    body = "".join(f"\n## {heading}\n\n{_code(text)}\n" for heading, text in parts.items())
    return (
        f"# {rule.id} {rule.name}\n\n{_code(summary)}\n\n"
        f"Severity: {rule.severity}. Asked about: {_ASKED[rule.scope]}. Needs: {needs}.\n"
        f"{body}\n## Thresholds\n\n{_thresholds(rule)}\n"
        f"On the command line: `forensics explain {rule.id}`. All causes: [causes](../causes.md).\n"
        "What the references are: [sources](../sources.md).\n"
    )


def sections(rule: Rule) -> tuple[str, dict[str, str]]:
    """Return a rule's one-line summary and its sections by heading, in the order written."""
    text = inspect.getdoc(sys.modules[type(rule).__module__]) or ""
    first, _, body = text.partition("\n")
    parts: dict[str, str] = {}
    heading: str | None = None
    for line in body.splitlines():
        if line and not line[0].isspace():
            heading = line.strip()
            parts[heading] = ""
        elif heading is not None:
            parts[heading] += line.removeprefix("    ") + "\n"
    summary = first.removeprefix(f"{rule.id} {rule.name}:").strip()
    if "_" not in summary.split()[0]:
        summary = summary[:1].upper() + summary[1:]
    return summary, {key: text.strip() for key, text in parts.items()}


def thresholds(rule: Rule) -> list[tuple[str, object, str]]:
    """Return a rule's thresholds: name, default, and what its docstring says of it."""
    params = getattr(rule, "params", None)
    if not isinstance(params, Params):
        return []
    _, _, listed = (inspect.getdoc(type(params)) or "").partition("Attributes:\n")
    told: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        if line.startswith(" " * 8):
            told[name] += " " + line.strip()
        elif ": " in line:
            name, _, words = line.strip().partition(": ")
            told[name] = words
    return [
        (item.name, getattr(params, item.name), told.get(item.name, "")) for item in fields(params)
    ]


def index() -> str:
    """Return the table of all causes."""
    rows = [
        f"| [{rule.id}](rules/{rule.id}-{rule.name}.md) | `{rule.name}` | {rule.severity} "
        f"| {sections(rule)[0].rstrip('.')} |"
        for rule in RULES
    ]
    return "\n".join(["| id | name | severity | in one line |", "|---|---|---|---|", *rows, ""])


def _thresholds(rule: Rule) -> str:
    listed = thresholds(rule)
    if not listed:
        return "None.\n"
    rows = [
        f"| `{name}` | {value} | {_code(words).replace(chr(124), chr(92) + chr(124))} |"
        for name, value, words in listed
    ]
    return "\n".join(["| name | default | meaning and source |", "|---|---|---|", *rows, ""])


def _code(text: str) -> str:
    """Turn reStructuredText literals into Markdown ones."""
    return text.replace("``", "`")
