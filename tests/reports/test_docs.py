"""The user documentation: its commands run and show what it says, its links lead somewhere."""

import contextlib
import io
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from forensics.cli import main
from forensics.reports import regions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def commands(page):
    """Give each command with the lines that stand below it."""
    for block in _CONSOLE.findall((DOCS / page).read_text(encoding="utf-8")):
        shown = []
        for line in [*block.splitlines(), "$ "]:
            if line.startswith("$ "):
                if shown:
                    yield shown[0], shown[1:]
                shown = [line[2:]]
            else:
                shown.append(line)


def run(command, monkeypatch):
    words = command.split()
    assert words[0] == "forensics"
    monkeypatch.setattr(sys, "argv", words)
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out):
        try:
            main.main()
        except SystemExit as ended:
            code = ended.code or 0
    return code, out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["reading-a-verdict.md", "exporting.md", "faq.md"])
def test_commands_run_and_show_what_the_page_shows(page, corpus, tmp_path, monkeypatch):
    recording = corpus / "b-preemption-cliff-v032"
    shutil.copy(recording / "server.log", tmp_path)
    shutil.copytree(recording / "metrics", tmp_path / "metrics")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    ran = 0
    for command, expected in commands(page):
        code, out = run(command, monkeypatch)
        assert code == 0, (command, out)
        for line in expected:
            wanted = line.split("…")[0].rstrip()
            assert any(given.startswith(wanted) for given in out.splitlines()), (command, line)
        ran += 1
    assert ran >= 2
    for block in _PYTHON.findall((DOCS / page).read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(block, page, "exec"), {})
        assert said.getvalue().strip()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ((DOCS / page).parent / path).resolve() if path else DOCS / page
        assert target.exists(), link
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, link


def test_the_worked_postmortem_is_one_that_can_be_renewed():
    text = (DOCS / "postmortem-example.md").read_text(encoding="utf-8")
    assert {"summary", "timeline", "root_cause", "ceiling"} <= regions.sections(text).keys()
    assert "to be filled in" not in text
    assert "`preemption-cliff` (PC101)" in text


@pytest.mark.slow
def test_the_worked_postmortem_shows_what_is_made_now(tmp_path):
    """Apart from confidence, the split of the fall and its witnesses, which each training moves."""
    moves = re.compile(
        r"(?<=confidence 0\.\d)\d|^\| (?:diversity|capacity) \| [\d.]+|^\|.* to 1 \|\n",
        re.MULTILINE,
    )
    text = (DOCS / "postmortem-example.md").read_text(encoding="utf-8")
    renewed = runpy.run_path(str(ROOT / "scripts" / "worked_example.py"))["renewed"]
    now, charts = renewed(tmp_path)
    assert moves.sub("", text) == moves.sub("", now), "python scripts/worked_example.py"
    assert all((DOCS / "images" / name).is_file() for name in charts)


def test_every_source_that_is_cited_is_described():
    text = (DOCS / "sources.md").read_text(encoding="utf-8")
    described = {int(number) for number in re.findall(r"^- \*\*(\d+)\*\*", text, re.MULTILINE)}
    code = [path for folder in ("forensics", "rules") for path in (ROOT / folder).rglob("*.py")]
    cited = {
        int(number)
        for path in code
        for number in re.findall(r"observed\.md,? (\d+)", path.read_text(encoding="utf-8"))
    }
    assert cited
    assert cited <= described
