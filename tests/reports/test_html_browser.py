"""The HTML report in a real Chromium: it draws, runs nothing of the input, and asks nobody."""

import shutil
from dataclasses import replace

import pytest

from forensics import analysis as a
from forensics.reports import html, palette

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WEEK = 7 * 86_400.0


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def opened(browser, tmp_path):
    contexts = []

    def open_page(text, **options):
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": 1000, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.heard, page.asked = [], []
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on("dialog", lambda dialog: page.heard.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_and_nobody_is_asked(analysis, opened, scheme):
    page = opened(html.render(analysis), color_scheme=scheme)
    page.wait_for_selector("figure.on .live svg")
    assert page.heard == []
    assert [url.split("/")[-1] for url in page.asked] == ["report.html"]
    assert page.locator(".live svg path").count() > 50
    assert page.locator("figure[data-live] .still").first.is_hidden()


def test_with_scripts_blocked_the_still_charts_are_there(analysis, opened):
    page = opened(html.render(analysis), java_script_enabled=False)
    stills = page.locator(".still svg")
    assert stills.count() == 3
    assert all(stills.nth(at).is_visible() for at in range(3))


def test_input_does_not_run(analysis, opened, hostile):
    attack = f'{hostile}<img src=x onerror="document.title=1">"></script><script>alert(2)</script>'
    finding = replace(analysis.findings[0], engine=attack)
    tracks = replace(analysis.tracks[0], engine=attack)
    one = replace(analysis, findings=(finding,), tracks=(tracks,))
    page = opened(html.render(one))
    page.wait_for_selector("figure.on .live svg")
    assert page.heard == []
    assert page.title().startswith("Report: preemption-cliff")
    assert page.locator("img").count() == 0
    assert "<script>alert(1)</script>" in page.inner_text("#evidence")


def test_the_raw_line_opens_by_keyboard(analysis, opened):
    page = opened(html.render(analysis, interactive=False))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#evidence summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#evidence pre").first.is_visible()


def test_hovering_tells_the_value(analysis, opened):
    page = opened(html.render(analysis))
    page.wait_for_selector("figure.on .live svg")
    # A bar of the preemptions, by its colour; lines have no width to hover.
    bars = page.locator(f'.live svg .mark-rect path[fill="{palette.day("bad")}"]')
    assert bars.count() == 76
    bar = bars.nth(70)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)
    page.wait_for_selector("#vg-tooltip-element.visible")
    told = page.inner_text("#vg-tooltip-element")
    assert "preemptions" in told and "28" in told
    assert "2026-11-29 17:34:05Z" in told
    assert page.heard == []


def test_paper_shows_still_charts_by_day(analysis, opened):
    page = opened(html.render(analysis), color_scheme="dark")
    page.wait_for_selector("figure.on .live svg")
    page.emulate_media(media="print")
    assert page.locator("figure[data-live] .still").first.is_visible()
    assert page.locator(".live").first.is_hidden()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 254)"


def fleet(analysis, count):
    points = 500
    times = tuple(analysis.window[0] + WEEK * i / points for i in range(points))
    names = ("hit_rate", "preemptions", "kv_usage", "running", "waiting", "ttft_s")
    made = []
    for number in range(count):
        signals = {
            name: a.Track(
                times, tuple(((i * 7 + number * 13 + k) % 97) / 97 for i in range(points))
            )
            for k, name in enumerate(names)
        }
        made.append(a.EngineTracks(f"pod-{number}", 60.0, signals, (), ()))
    engines = tuple(replace(analysis.engines[0], engine=track.engine) for track in made)
    findings = tuple(replace(analysis.findings[0], engine=track.engine) for track in made)
    ceilings = tuple(replace(analysis.ceilings[0], engine=track.engine) for track in made)
    return replace(
        analysis,
        window=(times[0], times[0] + WEEK),
        tracks=tuple(made),
        engines=engines,
        findings=findings,
        ceilings=ceilings,
    )


@pytest.mark.slow
def test_fifty_engines_and_a_week_stay_small_and_open_fast(analysis, opened):
    text = html.render(fleet(analysis, 50))
    assert len(text.encode()) < 5_000_000
    page = opened(text)
    page.wait_for_selector("figure.on .live svg")
    assert page.locator("#engines svg.spark").count() == 50
    assert page.heard == []
    # The browser's own clock, best of three: other work on the machine is not the page's.
    assert min(opening_s(page) for _ in range(3)) < 3.0


def opening_s(page):
    page.reload(wait_until="load")
    milliseconds = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    return milliseconds / 1000
