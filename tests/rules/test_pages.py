"""The pages of the causes: generated, complete, current, and what `forensics explain` prints."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from forensics.cli.main import app
from rules import RULES
from rules.interface import Params
from rules.pages import HEADINGS, INDEX_CLOSE, INDEX_OPEN, index, pages, sections, thresholds

DOCS = Path(__file__).parents[2] / "docs"
_IDS = [rule.id for rule in RULES]


def test_pages_are_current() -> None:
    on_disk = {
        path.name: path.read_text(encoding="utf-8")
        for path in (DOCS / "rules").glob("*.md")
        if not path.name.startswith("RB")
    }
    assert on_disk == pages(), "run scripts/cause_pages.py"


def test_index_is_current() -> None:
    text = (DOCS / "causes.md").read_text(encoding="utf-8")
    assert f"{INDEX_OPEN}\n{index()}{INDEX_CLOSE}" in text, "run scripts/cause_pages.py"


@pytest.mark.parametrize("rule", RULES, ids=_IDS)
def test_docstring_is_complete(rule) -> None:
    summary, parts = sections(rule)
    assert summary.endswith(".")
    assert tuple(parts) == HEADINGS
    assert all(len(text) > 3 for text in parts.values())


@pytest.mark.parametrize("rule", RULES, ids=_IDS)
def test_every_threshold_is_explained(rule) -> None:
    assert isinstance(rule.params, Params)
    unexplained = [name for name, _, words in thresholds(rule) if not words]
    assert unexplained == []


@pytest.mark.parametrize("rule", RULES, ids=_IDS)
def test_explain_prints_the_docstring(rule) -> None:
    for word in (rule.id, rule.id.lower(), rule.name):
        result = CliRunner().invoke(app, ["explain", word])
        assert result.exit_code == 0
        assert f"{rule.id} {rule.name}" in result.stdout
        assert all(heading in result.stdout for heading in HEADINGS)
