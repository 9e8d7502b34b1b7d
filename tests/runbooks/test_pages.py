"""The documentation pages: generated, complete, current, and their examples do what they say."""

import re
from datetime import date
from pathlib import Path

import pytest

from forensics.runbooks.checks import CHECKS
from forensics.runbooks.interface import RunbookCheck
from forensics.runbooks.linting import Request, lint_text, recorded_metrics
from forensics.runbooks.pages import HEADINGS, INDEX_CLOSE, INDEX_OPEN, index, pages
from forensics.runbooks.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_pages_are_current() -> None:
    on_disk = {
        path.name: path.read_text(encoding="utf-8") for path in (DOCS / "rules").glob("RB*.md")
    }
    assert on_disk == pages(), "run scripts/rule_pages.py"


def test_index_is_current() -> None:
    text = (DOCS / "lint.md").read_text(encoding="utf-8")
    assert f"{INDEX_OPEN}\n{index()}{INDEX_CLOSE}" in text, "run scripts/rule_pages.py"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_headings(check: RunbookCheck) -> None:
    found = re.findall(r"^## (.+)$", check.page, re.MULTILINE)
    assert tuple(found[: len(HEADINGS)]) == HEADINGS
    assert found[len(HEADINGS) :] in ([], ["Fix"])


def example(check: RunbookCheck, heading: str) -> list[str]:
    """Ids found in the example of a section, which may name its release before the block."""
    section = check.page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    settings = Settings()
    stated = re.search(r"For vLLM ([\d.]+?)(?: with the (V0) engine)?:", section)
    if stated:
        settings = settings.with_values((("vllm-version", stated[1].rstrip(".")),), "page")
        if stated[2]:
            settings = settings.with_values((("engine", stated[2]),), "page")
    text = section
    inner = re.search(r"```markdown\n(.*)```", section, re.DOTALL)
    if inner:
        text = inner[1]
    request = Request(settings, None, date(2026, 11, 29))
    result = lint_text("page.md", text, request, recorded_metrics([text], settings))
    return [one.finding.rule.id for one in result.findings]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_the_wrong_example_is_found(check: RunbookCheck) -> None:
    assert check.id in example(check, "Wrong")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_the_right_example_is_not(check: RunbookCheck) -> None:
    assert check.id not in example(check, "Right")
