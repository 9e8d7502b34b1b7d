import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from forensics.analysis import Where
from forensics.errors import UsageError
from forensics.reports import markdown, regions
from forensics.reports.plain import markdown_code, markdown_text

SNAPSHOTS = Path(__file__).with_name("snapshots")


@pytest.fixture(scope="module")
def browser_view():
    return MarkdownIt("commonmark", {"html": True}).enable("table")


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_snapshot(analysis, lang):
    shown = markdown.render(analysis, lang=lang).text
    assert shown == (SNAPSHOTS / f"postmortem-{lang}.md").read_text(encoding="utf-8")


def test_charts_are_files_beside_it(analysis):
    page = markdown.render(analysis, beside="my report")
    linked = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.text)
    assert [unquote(link) for link in linked] == list(page.charts)
    assert list(page.charts) == [
        "my report-timeline.svg",
        "my report-parts.svg",
        "my report-bounds.svg",
    ]
    for svg in page.charts.values():
        assert svg.startswith("<svg ") and "<path" in svg
        assert "<script" not in svg
        assert not re.search(r'(?:href|src)="http', svg)


def test_charts_are_the_same_each_time(analysis):
    first, second = (markdown.render(analysis, beside="r").charts for _ in range(2))
    assert first == second


def test_charts_can_be_embedded(analysis):
    page = markdown.render(analysis, embed=True)
    assert page.charts == {}
    assert page.text.count("](data:image/svg+xml;base64,") == 3


def test_input_stays_text(analysis, browser_view, hostile):
    finding = replace(analysis.findings[0], engine=hostile)
    one = replace(analysis, findings=(finding, *analysis.findings[1:]))
    shown = browser_view.render(markdown.render(one).text)
    assert "<script" not in shown
    assert "alert(1)" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


def test_table_cells_hold_whatever_is_in_a_label(analysis, browser_view):
    where = Where("a|b.log", series='x{l="``|` |"}', time=1795973505.0)
    finding = replace(
        analysis.findings[0], exhibits=(replace(analysis.findings[0].exhibits[0], source=where),)
    )
    shown = browser_view.render(markdown.render(replace(analysis, findings=(finding,))).text)
    row = next(line for line in shown.split("<tr>") if "a|b.log" in line and "79.7" in line)
    assert row.count("<td") == 5


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("<b>", "&lt;b&gt;"),
        ("a_b*c", r"a\_b\*c"),
        ("@team", "&#64;team"),
        ("https://evil.example", "https&#58;//evil.example"),
        ("#12", r"\#12"),
    ],
)
def test_markdown_text(text, safe):
    assert markdown_text(text) == safe


def test_markdown_code_fences_around_backticks():
    assert markdown_code("a`b") == "``a`b``"
    assert markdown_code("`") == "`` ` ``"


def test_what_a_person_wrote_is_kept(analysis):
    first = markdown.render(analysis).text
    edited = first.replace(
        "*[to be filled in: who noticed, what they saw, what it cost]*",
        "Support saw 300 tickets.",
    ).replace("confidence 0.93", "confidence tampered")
    later = replace(analysis, tool_version="0.2.0")
    again = markdown.render(later, written=edited).text
    assert "Support saw 300 tickets." in again
    assert "confidence tampered" not in again
    assert "Made by forensics 0.2.0" in again
    assert markdown.render(later, written=again).text == again


def test_a_section_that_was_removed_stays_away(analysis):
    first = markdown.render(analysis).text
    start, end = regions.sections(first)["contributing"]
    again = markdown.render(analysis, written=first[:start] + first[end:]).text
    assert "Contributing factors" not in again


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("# My notes\n", "no section of this report"),
        ("<!-- forensics:begin summary -->\n", "no end mark"),
        ("<!-- forensics:end summary -->\n", "no begin mark"),
        (
            "<!-- forensics:begin summary -->\n<!-- forensics:begin impact -->\n",
            "begins twice or inside",
        ),
    ],
)
def test_files_that_are_not_ours_are_left_alone(analysis, written, said):
    with pytest.raises(UsageError, match=said):
        markdown.render(analysis, written=written)


def test_healthy_has_no_empty_tables(healthy):
    shown = markdown.render(healthy).text
    assert "# Postmortem: healthy" in shown
    assert "None" not in shown
