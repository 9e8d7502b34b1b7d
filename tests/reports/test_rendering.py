"""Which report goes where, through the same door as the command line."""

import io
import json as stdlib_json
import stat
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from forensics.cli.render import Format, Look, Output, colour_wanted, outputs, save, write
from forensics.errors import UsageError


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def written(analysis, wanted, look=None, stream=None, environ=None):
    stream = stream or io.StringIO()
    write(analysis, wanted, look or Look(), stdout=stream, environ=environ or {})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("stated", "paths", "expected"),
    [
        (None, [], [(Format.TEXT, None)]),
        ("json", [], [(Format.JSON, None)]),
        (None, ["a.html", "b.md"], [(Format.HTML, "a.html"), (Format.MARKDOWN, "b.md")]),
        ("json", ["report.txt"], [(Format.JSON, "report.txt")]),
        ("json", ["a.md", "b"], [(Format.MARKDOWN, "a.md"), (Format.JSON, "b")]),
        (
            None,
            ["a.sarif.json", "j.xml"],
            [(Format.SARIF, "a.sarif.json"), (Format.JUNIT, "j.xml")],
        ),
        ("sarif", ["-"], [(Format.SARIF, None)]),
    ],
)
def test_formats(stated, paths, expected):
    found = outputs(stated, [Path(path) for path in paths])
    assert [(one.format, one.path and str(one.path)) for one in found] == expected


def test_an_unknown_suffix_is_a_usage_error():
    with pytest.raises(UsageError, match="names no report format"):
        outputs(None, [Path("report.pdf")])


def test_only_one_report_for_the_standard_output():
    with pytest.raises(UsageError, match="only one"):
        outputs(None, [Path("-"), Path("-")])


@pytest.mark.parametrize(
    ("environ", "look", "wanted"),
    [
        ({}, Look(), True),
        ({"NO_COLOR": "1"}, Look(), False),
        ({"NO_COLOR": ""}, Look(), True),
        ({"TERM": "dumb"}, Look(), False),
        ({}, Look(no_color=True), False),
    ],
)
def test_colour(environ, look, wanted):
    assert colour_wanted(Terminal(), look, environ) is wanted
    assert colour_wanted(io.StringIO(), look, environ) is False


def test_a_pipe_gets_no_escape(analysis):
    assert "\x1b" not in written(analysis, [Output(Format.TEXT, None)])
    assert "\x1b[1m" in written(analysis, [Output(Format.TEXT, None)], stream=Terminal())


def test_a_latin_stream_gets_what_it_can_take(analysis):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(analysis, [Output(Format.TEXT, None)], Look(), stdout=stream, environ={})
    assert b"VERDICT  preemption-cliff" in raw.getvalue()
    write(analysis, [Output(Format.TEXT, None)], Look(lang="ko"), stdout=stream, environ={})


def test_all_files_of_one_run(analysis, tmp_path):
    names = ["r.txt", "r.json", "r.md", "r.html", "r.sarif", "r.xml"]
    wanted = outputs(None, [tmp_path / "out" / name for name in names])
    assert written(analysis, wanted, Look(interactive=False)) == ""
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    charts = ["r-bounds.svg", "r-parts.svg", "r-timeline.svg"]
    assert made == sorted([*names, *charts])
    sarif = stdlib_json.loads((tmp_path / "out" / "r.sarif").read_text())
    result = sarif["runs"][0]["results"][0]
    assert result["ruleId"] == "PC101"
    region = result["locations"][0]["physicalLocation"]
    assert region["artifactLocation"]["uri"] == "server.log"
    assert region["region"]["startLine"] == 1204
    suite = ElementTree.parse(tmp_path / "out" / "r.xml").getroot()
    assert suite.get("failures") == "2"


def test_github_annotations_stand_on_one_line(analysis):
    lines = written(analysis, [Output(Format.GITHUB, None)]).splitlines()
    assert lines[0].startswith("::error file=server.log,line=1204,")
    assert len(lines) == 2


def test_writing_markdown_again_keeps_what_a_person_wrote(analysis, tmp_path):
    path = tmp_path / "pm.md"
    wanted = outputs(None, [path])
    written(analysis, wanted)
    path.write_text(path.read_text() + "\nOur own words.\n")
    written(analysis, wanted)
    assert path.read_text().endswith("\nOur own words.\n")


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "r.json"
    save(path, "one")
    save(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o044, "others can read it as any file"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        save(tmp_path / "file" / "r.json", "x")
