"""Every report on every recording: complete, within its width, by the schema, rereadable."""

import json as stdlib_json

import jsonschema
import pytest

from forensics import analyze
from forensics.catalog.messages import LANGUAGES, catalogue
from forensics.reports import json, markdown, schema
from forensics.reports.layout import width
from forensics.reports.text import TextStyle, render

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def analyses(corpus):
    found = {}
    for folder in sorted(corpus.iterdir()):
        paths = [
            str(path) for name in ("server.log", "metrics") if (path := folder / name).exists()
        ]
        if paths:
            found[folder.name] = analyze(paths)
    assert len(found) >= 20
    return found


def test_documents_follow_the_schema_and_read_back(analyses):
    validator = jsonschema.Draft202012Validator(schema.schema())
    for name, one in analyses.items():
        text = json.render(one)
        wrong = [error.message for error in validator.iter_errors(stdlib_json.loads(text))]
        assert wrong == [], name
        assert json.render(json.load(text)) == text, name


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("columns", [80, 120])
def test_every_line_fits(analyses, lang, columns):
    for name, one in analyses.items():
        shown = render(one, TextStyle(width=columns, lang=lang, verbose=True, explain=True))
        commands = {action.command for finding in one.findings for action in finding.actions}
        wide = [
            line
            for line in shown.splitlines()
            if width(line) > columns and line.strip() not in commands
        ]
        assert wide == [], name


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_figure_has_a_name(analyses, lang):
    words = catalogue(lang)
    for name, one in analyses.items():
        for finding in one.findings:
            for exhibit in (*finding.exhibits, *finding.against):
                assert f"reports.signal.{exhibit.signal}" in words, (name, exhibit.signal)
        for tracks in one.tracks:
            for mark in tracks.marks:
                assert f"reports.event.{mark.kind}" in words, (name, mark.kind)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_markdown_of_every_recording(analyses, lang):
    for name, one in analyses.items():
        shown = markdown.render(one, lang=lang).text
        assert one.verdict.cause in shown, name
        assert "None" not in shown.replace("speculative_config=None", ""), name
