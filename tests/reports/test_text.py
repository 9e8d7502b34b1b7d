import re
from dataclasses import replace
from pathlib import Path

import pytest

from forensics.reports.layout import cells, sparkline, width, wrap
from forensics.reports.text import TextStyle, render

SNAPSHOTS = Path(__file__).with_name("snapshots")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_snapshot(analysis, columns, lang):
    shown = render(analysis, TextStyle(width=columns, lang=lang, verbose=True, explain=True))
    stored = SNAPSHOTS / f"text-{lang}-{columns}.txt"
    assert shown == stored.read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_line_fits(analysis, columns, lang):
    shown = render(analysis, TextStyle(width=columns, lang=lang, verbose=True, explain=True))
    assert [line for line in shown.splitlines() if width(line) > columns] == []


def test_nothing_of_the_input_acts_on_the_terminal(analysis):
    shown = render(analysis, TextStyle(verbose=True, explain=True))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert r"\x1b[31mred\x07 \u202egnp.exe" in shown


def test_colour_only_repeats_the_words(analysis):
    coloured = render(analysis, TextStyle(colour=True))
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(analysis, TextStyle())


def test_ascii_streams_get_ascii(analysis):
    shown = render(analysis, TextStyle(ascii_only=True, verbose=True))
    assert shown.isascii()
    assert "2026-11-29 17:32:49-17:33:05Z" in shown


def test_quiet_says_the_verdict_the_first_action_and_the_limit(analysis):
    lines = render(analysis, TextStyle(quiet=True)).splitlines()
    assert lines[0] == "VERDICT  preemption-cliff (PC101) · critical · confidence 0.93"
    assert lines[-4:] == [
        "→ Lower the batch limit to 72 and shed what is above it.",
        "  --max-num-seqs 72",
        "",
        "engine 0 max_num_seqs 72 (66–79)",
    ]


@pytest.mark.parametrize(
    ("lang", "count", "said"),
    [
        ("en", 1, ["1 file, ", "1 line, 1 sample"]),
        ("en", 2, ["1 file, ", "2 lines, 2 samples"]),
        ("ko", 1, ["파일 1개, ", "1 줄, 1 표본"]),
    ],
)
def test_one_of_a_kind_is_singular(analysis, lang, count, said):
    view = replace(analysis.files[1], lines=count, samples=count)
    shown = render(replace(analysis, files=(view,)), TextStyle(lang=lang)) + "\n"
    assert re.search(rf"{said[0]}\d", shown)
    assert re.search(rf"{said[1]}[;\n]", shown)


def test_healthy_is_short(healthy):
    shown = render(healthy, TextStyle())
    assert "VERDICT  healthy · confidence 0.97" in shown
    assert "DO THIS NOW" not in shown


def test_what_was_not_observed_is_a_dash(analysis):
    exhibit = replace(analysis.findings[0].exhibits[0], before=None, source=None)
    finding = replace(analysis.findings[0], exhibits=(exhibit,))
    shown = render(replace(analysis, findings=(finding,)), TextStyle())
    assert re.search(r"hit rate +– → 52\.0 %", shown)


def test_findings_of_a_fleet_are_named_by_engine(analysis):
    second = replace(analysis.engines[0], engine="1")
    shown = render(replace(analysis, engines=(*analysis.engines, second)), TextStyle())
    assert re.search(r"\n  0 +preemption-cliff 0\.93, eviction-pressure 0\.44\n  1 +–\n", shown)


def test_sparkline_keeps_gaps_and_bounds():
    assert sparkline([None, 0.0, 1.0, 7.0, -1.0], top=1.0) == " ▁██▁"


def test_cells_average_and_leave_gaps():
    assert cells([0.0, 1.0, 9.0], [1.0, 3.0, None], (0.0, 10.0), 5) == [2.0, None, None, None, None]


def test_wrap_cuts_words_longer_than_a_line():
    assert wrap("x" * 25, 12, "  ") == ["  " + "x" * 10, "  " + "x" * 10, "  xxxxx"]


def test_wide_characters_count_twice():
    assert width("적중률 a") == 8
    assert [width(line) for line in wrap("적중률이떨어졌습니다", 10)] == [10, 10]


def test_a_figure_and_its_unit_stay_on_one_line():
    assert wrap("it fell to 29.9 %, in 15 s", 14) == ["it fell to", "29.9 %, in", "15 s"]
    assert wrap("usage (at 8.79 KiB), and %", 12) == ["usage (at", "8.79 KiB),", "and %"]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_long_name_is_not_cut_where_there_is_room(analysis, columns):
    (first, *_) = analysis.findings
    exhibit = replace(
        first.exhibits[0],
        signal="sharing_of_running_lost",
        before=0.376,
        after=1.04,
        unit="tokens/token",
    )
    one = replace(analysis, findings=(replace(first, exhibits=(exhibit,), against=()),))
    name = "pool tokens per own token of a running request"
    assert f"  {name} 0.376 → 1.04" in render(one, TextStyle(width=columns))
