import json as stdlib_json
import math
import random
from dataclasses import replace

import pytest

from forensics.analysis import Track
from forensics.reports import compare as reports
from forensics.reports import json
from forensics.reports.comparison import compare, standard_error


@pytest.fixture
def fixed(analysis, healthy):
    """The incident's deployment after the fix: max_num_seqs 72, hits back."""
    epoch = analysis.engines[0].epochs[0]
    changed = replace(epoch, config={**epoch.config, "max_num_seqs": 72})
    engine = replace(analysis.engines[0], epochs=(changed,))
    return replace(healthy, engines=(engine,))


def figures(found):
    return {item.signal: item for item in found.figures}


def test_a_fix_that_worked(analysis, fixed):
    found = compare(analysis, fixed)
    assert found.outcome == "worked"
    assert [(item.name, item.before, item.after) for item in found.settings] == [
        ("max_num_seqs", "128", "72")
    ]
    seen = figures(found)
    assert seen["hit_rate"].judgement == "better"
    assert seen["preemptions"].judgement == "better"
    assert seen["ttft_s"].after == pytest.approx(0.033, abs=0.001)
    assert seen["running"].judgement == "changed"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("healthy", "healthy", "both_healthy"),
        ("preemption-cliff", "preemption-cliff", "remains"),
        ("healthy", "preemption-cliff", "appeared"),
        ("preemption-cliff", "seat-limit", "changed"),
        ("preemption-cliff", "insufficient-evidence", "undecided"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_outcome_has_its_sentence(analysis, before, after, outcome, lang):
    sides = [
        replace(analysis, verdict=replace(analysis.verdict, cause=cause))
        for cause in (before, after)
    ]
    found = compare(*sides)
    assert found.outcome == outcome
    assert reports.outcome(found, lang)


def test_the_same_recording_shows_no_change(analysis):
    found = compare(analysis, analysis)
    assert {item.judgement for item in found.figures} == {"same"}
    assert found.settings == []
    assert "No setting differs." in reports.render_text(analysis, analysis)


def test_noise_alone_is_no_change(healthy):
    dice = random.Random(7)
    sides = []
    for _ in range(2):
        times = healthy.tracks[0].signals["hit_rate"].times
        noisy = Track(times, tuple(0.8 + dice.gauss(0, 0.05) for _ in times))
        tracks = replace(healthy.tracks[0], signals={"hit_rate": noisy})
        sides.append(replace(healthy, tracks=(tracks,)))
    assert figures(compare(*sides))["hit_rate"].judgement == "same"


def test_other_traffic_is_said(analysis):
    times = analysis.tracks[0].signals["hit_rate"].times

    def side(rate):
        track = Track(times, tuple(rate + 0.01 * (n % 3) for n, _ in enumerate(times)))
        tracks = replace(analysis.tracks[0], signals={"requests_per_s": track})
        return replace(analysis, tracks=(tracks,))

    found = compare(side(5.0), side(2.0))
    assert found.traffic_changed == ["requests_per_s"]
    assert "The traffic is not the same on both sides (requests/s)" in reports.render_text(
        side(5.0), side(2.0)
    )


def test_one_side_not_observed_is_unclear_not_zero(analysis, healthy):
    tracks = replace(healthy.tracks[0], signals={})
    found = compare(analysis, replace(healthy, tracks=(tracks,)))
    assert figures(found)["hit_rate"].judgement == "unclear"
    assert figures(found)["hit_rate"].after is None


def test_standard_error_of_independent_points_is_the_textbook_one():
    dice = random.Random(1)
    values = [dice.gauss(0, 1) for _ in range(10_000)]
    assert standard_error(values) == pytest.approx(0.01, rel=0.05)


def test_standard_error_grows_with_memory():
    """AR(1) with r = 0.8: the error of the mean is sqrt(1.8/0.2) = 3 times that of white noise."""
    dice, value, values = random.Random(2), 0.0, []
    for _ in range(20_000):
        value = 0.8 * value + dice.gauss(0, 0.6)
        values.append(value)
    assert standard_error(values) == pytest.approx(3 / math.sqrt(20_000), rel=0.1)


def test_too_few_points_have_no_error_to_judge_by():
    assert standard_error([1.0, 2.0]) == math.inf


def test_saved_documents_compare_alike(analysis, fixed):
    first, second = (json.load(json.render(side)) for side in (analysis, fixed))
    assert reports.render_json(first, second) == reports.render_json(analysis, fixed)
    document = stdlib_json.loads(reports.render_json(analysis, fixed))
    assert document["outcome"] == "worked"
    assert document["settings"] == [{"name": "max_num_seqs", "before": "128", "after": "72"}]


def test_text_and_markdown_say_the_same(analysis, fixed):
    text = reports.render_text(analysis, fixed)
    markdown = reports.render_markdown(analysis, fixed)
    for said in ("The incident is gone: preemption-cliff was found before", "128", "72", "better"):
        assert said in text and said in markdown
