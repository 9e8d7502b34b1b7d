import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from forensics.reports import html, palette


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.headings, self.scripts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "script":
            self.scripts.append(attrs)


def read(text):
    page = Page()
    page.feed(text)
    return page


@pytest.fixture(scope="module")
def light():
    return {}


def test_the_order_of_reading(analysis):
    shown = html.render(analysis, interactive=False)
    ids = re.findall(r'<section id="(\w+)"', shown)
    assert ids == [
        "verdict",
        "now",
        "timeline",
        "parts",
        "evidence",
        "runner_up",
        "impact",
        "ceiling",
        "engines",
        "coverage",
    ]


@pytest.mark.parametrize("interactive", [True, False])
def test_nothing_is_fetched(analysis, interactive):
    page = read(html.render(analysis, interactive=interactive))
    for tag, attrs in page.tags:
        for name in ("src", "href", "action", "data"):
            value = attrs.get(name)
            assert value is None or value.startswith("#"), (tag, attrs)


def test_without_scripts_there_are_none(analysis):
    shown = html.render(analysis, interactive=False)
    assert read(shown).scripts == []
    assert "script-src" not in shown


def test_only_scripts_of_ours_may_run(analysis):
    page = read(html.render(analysis))
    assert [attrs.get("type") for attrs in page.scripts] == [
        "application/json",
        "application/json",
        None,
        None,
    ]
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy.count("sha256-") == 2
    assert "default-src 'none'" in policy


def test_input_is_escaped(analysis, hostile):
    finding = replace(analysis.findings[0], engine=hostile)
    shown = html.render(replace(analysis, findings=(finding,)), interactive=False)
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


def test_a_screen_reader_finds_its_way(analysis):
    page = read(html.render(analysis, interactive=False))
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids)), "ids are unique, also those inside drawings"
    drawings = [attrs for tag, attrs in page.tags if tag == "svg" and "role" in attrs]
    assert len(drawings) == 4 and all(attrs["role"] == "img" for attrs in drawings)
    links = [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"]
    assert set(links) <= set(page.ids)


def test_korean_says_so(analysis):
    shown = html.render(analysis, lang="ko", interactive=False)
    assert '<html lang="ko">' in shown
    assert "지금 할 일" in shown


def test_the_same_each_time(analysis):
    assert html.render(analysis) == html.render(analysis)


def test_healthy_has_nothing_to_do(healthy):
    shown = html.render(healthy, interactive=False)
    assert 'id="now"' not in shown
    assert "None" not in shown


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("role", ["ink", "muted", "hit", "bad"])
@pytest.mark.parametrize("time", ["day", "night"])
def test_text_has_contrast_aa(role, time):
    """WCAG 2.1, 1.4.3: at least 4.5 to 1 against the page."""
    text, paper = (luminance(getattr(palette.COLOURS[r], time)) for r in (role, "paper"))
    assert (max(text, paper) + 0.05) / (min(text, paper) + 0.05) >= 4.5


@pytest.mark.parametrize("role", ["usage", "second", "third"])
@pytest.mark.parametrize("time", ["day", "night"])
def test_lines_have_contrast(role, time):
    """WCAG 2.1, 1.4.11: at least 3 to 1 for graphical objects."""
    line, paper = (luminance(getattr(palette.COLOURS[r], time)) for r in (role, "paper"))
    assert (max(line, paper) + 0.05) / (min(line, paper) + 0.05) >= 3
