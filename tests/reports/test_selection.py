"""What a reader sees first, and how long paths are told."""

from dataclasses import replace

from forensics.analysis import Where
from forensics.catalog.messages import Message
from forensics.reports import folders, json, selection
from forensics.reports.chronicle import happenings
from forensics.reports.text import TextStyle, render

FOLDER = "/srv/incidents/2026-11-29/"


def moved(analysis):
    """The same incident, named by absolute paths."""

    def at(where):
        return where and replace(where, file=FOLDER + where.file)

    findings = tuple(
        replace(
            item,
            exhibits=tuple(replace(one, source=at(one.source)) for one in item.exhibits),
        )
        for item in analysis.findings
    )
    files = tuple(replace(view, path=FOLDER + view.path) for view in analysis.files)
    return replace(analysis, findings=findings, files=files, reproduce=f"forensics {FOLDER}")


def test_the_shared_folder_is_said_once(analysis):
    one = moved(analysis)
    assert folders.shared_folder(one) == FOLDER
    shown = render(one, TextStyle(width=120))
    assert shown.count(FOLDER) == 1
    assert "server.log:1204" in shown


def test_the_command_keeps_its_paths(analysis):
    assert folders.without_folder(moved(analysis)).reproduce == f"forensics {FOLDER}"


def test_json_keeps_paths_as_named(analysis):
    assert FOLDER + "server.log" in json.render(moved(analysis))


def test_short_and_unshared_folders_stay(analysis):
    assert folders.shared_folder(analysis) == ""
    views = tuple(
        replace(view, path=f"/a{number}/{view.path}") for number, view in enumerate(analysis.files)
    )
    assert folders.shared_folder(replace(analysis, files=views)) == ""


def test_an_action_is_told_once(analysis):
    main = analysis.findings[0]
    other = replace(main, cause="eviction-pressure", actions=main.actions)
    assert len(selection.advice(replace(analysis, findings=(main, other)))) == 1


def test_the_finding_of_the_verdicts_engine_is_the_main_one(analysis):
    main = analysis.findings[0]
    elsewhere = replace(main, engine="7")
    assert selection.main_finding(replace(analysis, findings=(elsewhere, main))) is main


def test_an_open_verdict_shows_the_evidence_of_its_candidates(analysis):
    verdict = replace(
        analysis.verdict,
        cause="insufficient-evidence",
        candidates=(("eviction-pressure", 0.43), ("preemption-cliff", 0.42)),
    )
    one = replace(analysis, verdict=verdict)
    assert [item.cause for item in selection.evidence_findings(one)] == [
        "eviction-pressure",
        "preemption-cliff",
    ]
    shown = render(one, TextStyle())
    assert "PC102 eviction-pressure\n  KV usage" in shown
    assert "eviction-pressure 0.43, preemption-cliff 0.42" in shown


def test_happenings_are_in_order_of_time(analysis):
    rows = happenings(analysis, "en")
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    assert rows[0].text == "engine started"
    assert rows[0].source == Where("server.log", line=44)


def test_messages_with_paths_are_shortened_too(analysis):
    note = Message("test.weighed", {"label": FOLDER + "x.log"})
    one = moved(analysis)
    weighed = (replace(one.weighed[0], reason=note),)
    assert folders.without_folder(replace(one, weighed=weighed)).weighed[0].reason.values == {
        "label": "x.log"
    }
