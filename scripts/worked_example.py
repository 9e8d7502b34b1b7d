"""Make the worked example of the guides again: postmortem, charts, and pictures of the report.

    python scripts/worked_example.py              writes docs/postmortem-example.md and its charts
    python scripts/worked_example.py --pictures   and the pictures of the HTML report (Chromium)

The recording comes from the corpus of the tests. What a person wrote between the sections stays.
"""

import contextlib
import io
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from forensics.cli import main as cli  # noqa: E402

DOCS = ROOT / "docs"
NAME = "postmortem-example"
RECORDING = "b-preemption-cliff-v032"
VIEW = {"width": 960, "height": 1480}
A4 = {"width": 794, "height": 1123}  # at 96 pixels an inch


def renewed(folder: Path) -> tuple[str, dict[str, str]]:
    """Analyse the recording in a folder; give the page as it is now, and its charts by name."""
    with tarfile.open(ROOT / "tests" / "corpus" / "corpus.tar.xz") as archive:
        wanted = [m for m in archive.getmembers() if f"/{RECORDING}/" in m.name]
        archive.extractall(folder, wanted, filter="data")
    place = folder / "corpus" / RECORDING
    page = place / f"{NAME}.md"
    shutil.copy(DOCS / page.name, page)
    outputs = ["-o", page.name, "-o", "report.html"]
    command = ["forensics", "analyze", "server.log", "metrics", "-q", *outputs]
    with (
        contextlib.chdir(place),
        mock.patch.object(sys, "argv", command),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        cli.main()
    text = page.read_text("utf-8").replace(f"]({NAME}-", f"](images/{NAME}-")
    return text, {path.name: path.read_text("utf-8") for path in place.glob("*.svg")}


def pictures(report: Path) -> None:
    """Take the pictures of the report by day, at night and on paper."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=VIEW, color_scheme=scheme)
            page.goto(report.as_uri())
            page.wait_for_selector("figure.on")
            page.screenshot(path=DOCS / "images" / f"report-{scheme}.png")
        page = browser.new_page(viewport=A4, device_scale_factor=0.575)
        page.goto(report.as_uri())
        page.emulate_media(media="print")
        page.add_style_tag(content="body{padding:16mm 14mm}")  # the margins of the paper
        page.screenshot(path=DOCS / "images" / "report-print.png")
        browser.close()


def main() -> None:
    """Write the page and its charts, and the pictures where they are asked for."""
    with tempfile.TemporaryDirectory() as folder:
        text, charts = renewed(Path(folder))
        (DOCS / f"{NAME}.md").write_text(text, "utf-8")
        for name, chart in charts.items():
            (DOCS / "images" / name).write_text(chart, "utf-8")
        if "--pictures" in sys.argv[1:]:
            pictures(Path(folder) / "corpus" / RECORDING / "report.html")


if __name__ == "__main__":
    main()
