"""Comments that hold findings back, and the baseline."""

from datetime import date
from pathlib import Path

import pytest

from forensics.errors import ConfigError
from forensics.runbooks import baseline
from forensics.runbooks.linting import LintResult, Request, lint_text
from forensics.runbooks.settings import Settings

BAD = "`max(vllm:gpu_cache_usage_perc)`"
TODAY = date(2026, 11, 29)


def found(text: str, path: str = "a.md", today: date = TODAY) -> tuple[list[str], list[str]]:
    result = lint_text(path, text, Request(Settings(), None, today), frozenset())
    ids = [
        f"{one.finding.rule.id}@{one.finding.place.line}"
        for one in result.findings
        if one.finding.place
    ]
    return ids, [one.finding.rule.id for one in result.snoozed]


def test_disable_until_enable() -> None:
    text = (
        f"{BAD}\n<!-- forensics: disable=RB103 -->\n{BAD}\n"
        f"<!-- forensics: enable=metric-renamed -->\n{BAD}\n"
    )
    assert found(text) == (["RB103@1", "RB103@5"], [])


def test_disable_all() -> None:
    assert found(f"<!-- forensics: disable=all -->\n{BAD}\n") == ([], [])


def test_disable_next_line() -> None:
    assert found(f"<!-- forensics: disable-next-line=RB103 -->\n\n{BAD}\n{BAD}\n") == (
        ["RB103@4"],
        [],
    )


def test_disable_next_line_covers_a_fenced_block() -> None:
    block = "```promql\n# usage\nmax(vllm:gpu_cache_usage_perc)\n```\n"
    text = f"<!-- forensics: disable-next-line=RB103 -->\n{block}{block}"
    assert found(text) == (["RB103@8"], [])


def test_comment_inside_a_fenced_block_speaks_for_the_block() -> None:
    text = f"```promql\n# forensics: disable=RB103\nmax(vllm:gpu_cache_usage_perc)\n```\n{BAD}\n"
    assert found(text) == (["RB103@5"], [])


def test_example_in_a_fenced_block_is_no_comment() -> None:
    text = f"```markdown\n<!-- forensics: disable=all -->\n```\n# forensics: lint\n{BAD}\n"
    assert found(text) == (["RB103@5"], [])


def test_yaml_comments() -> None:
    rule = "- alert: A\n  expr: max(vllm:gpu_cache_usage_perc) > 0.9"
    assert found(f"{rule}  # forensics: disable=RB103\n{rule}\n", "a.yaml") == (["RB103@4"], [])
    assert found(f"# forensics: disable=RB103\n{rule}\n{rule}\n", "a.yaml") == ([], [])


def test_json_string_speaks_for_the_file() -> None:
    text = '{"description": "forensics: disable=RB103", "expr": "max(vllm:gpu_cache_usage_perc)"}'
    assert found(text, "a.json") == ([], [])


def test_snooze() -> None:
    text = f"<!-- forensics: snooze=2026-12-31 RB103,RB109 after the upgrade -->\n{BAD}\n"
    assert found(text) == ([], ["RB103"])
    ids, snoozed = found(text, today=date(2027, 1, 1))
    assert ids == ["RB901@1", "RB103@2"] and snoozed == []


def test_baseline_survives_edits_elsewhere(tmp_path: Path) -> None:
    request = Request(Settings(), None, TODAY)
    before = lint_text("a.md", f"{BAD}\n", request, frozenset())
    path = tmp_path / "baseline.json"
    assert baseline.write(path, LintResult((before,))) == 1
    known = baseline.load(path)
    after = lint_text(
        "a.md", f"# New heading\n\n{BAD}\n\n`{BAD[1:-1]} > 1`\n", request, frozenset()
    )
    left = baseline.apply(LintResult((after,)), known)
    assert left.baselined == 1
    assert [one.place.line for one in left.findings if one.place] == [5]


def test_same_finding_twice_needs_two_entries(tmp_path: Path) -> None:
    request = Request(Settings(), None, TODAY)
    path = tmp_path / "baseline.json"
    baseline.write(path, LintResult((lint_text("a.md", f"{BAD}\n", request, frozenset()),)))
    twice = lint_text("a.md", f"{BAD}\n\n{BAD}\n", request, frozenset())
    left = baseline.apply(LintResult((twice,)), baseline.load(path))
    assert len(left.findings) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2, "files": {}}', '{"version": 1}'])
def test_what_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        baseline.load(path)
