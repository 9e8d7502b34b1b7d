"""The checks' docstrings as pages of the documentation, and the index of all checks."""

from forensics.runbooks.checks import CHECKS
from forensics.runbooks.interface import RunbookCheck

INDEX_OPEN = "<!-- checks -->"
INDEX_CLOSE = "<!-- /checks -->"
HEADINGS = ("What it checks", "Why it matters", "Wrong", "Right", "When it is silent")
"""What every page must hold, in this order; `Fix` may follow."""


def pages() -> dict[str, str]:
    """Return the pages by file name."""
    return {f"{check.id}-{check.name}.md": page(check) for check in CHECKS}


def page(check: RunbookCheck) -> str:
    """Return one page."""
    summary, _, body = check.page.strip().partition("\n")
    mended = "yes" if "## Fix" in body else "no"
    return (
        f"# {check.id} {check.name}\n\n{summary}\n\n"
        f"Severity: {check.severity}. Mended by `--fix`: {mended}.\n{body}\n\n"
        "## How to hold it back\n\n"
        "```markdown\n"
        f"<!-- forensics: disable-next-line={check.id} -->\n"
        f"<!-- forensics: disable={check.id} -->\n"
        f"<!-- forensics: snooze=2027-01-31 {check.id} the reason -->\n"
        "```\n\n"
        f'In YAML and shell the same behind `#`; for all files `disable = ["{check.id}"]` in '
        "`[tool.forensics]`. See [lint](../lint.md).\n"
    )


def index() -> str:
    """Return the table of all checks."""
    rows = [
        f"| [{check.id}](rules/{check.id}-{check.name}.md) | `{check.name}` | {check.severity} "
        f"| {check.page.strip().partition(chr(10))[0]} |"
        for check in CHECKS
    ]
    return "\n".join(["| id | name | severity | finds |", "|---|---|---|---|", *rows, ""])
