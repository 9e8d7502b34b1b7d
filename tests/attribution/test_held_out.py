"""The figures of the diagnosis on incidents that nothing was fitted to do not get worse.

Bounds lie two or three incidents below what was measured, so that they catch a loss, not a change.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.diagnosis import (
    all_answers,
    calibration_error,
    chance_error,
    diagnose,
    errors,
    present,
    reported,
    score,
    wilson,
)
from benchmarks.incident_set import incidents
from forensics.attribution.combiner import combiner, probability
from forensics.attribution.readings import Reading
from scripts.live_rows import recordings, rows
from scripts.train_attribution import is_unseen, odd_seed

FOLDER = Path(__file__).parents[1] / "incidents"


def share(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1]


@pytest.fixture(scope="module")
def ways():
    return all_answers(incidents(FOLDER, "held-out"))


def test_every_incident_gets_an_answer_of_some_kind(ways):
    assert len(ways["forensics"]) == 79
    assert all(answer.cause for answer in ways["forensics"])


def test_accuracy_and_share_answered(ways):
    figures = score(ways["forensics"])
    assert share(figures.accuracy) >= 0.80
    assert share(figures.answered) >= 0.55
    naive = score(ways["naive rule"])
    trivial = score(ways["largest change"])
    assert share(figures.accuracy) >= share(naive.accuracy) + 0.3
    assert share(naive.accuracy) > share(trivial.accuracy)


def test_restarts_and_the_preemption_regime(ways):
    figures = score(ways["forensics"])
    assert share(figures.precision["cold-cache"]) >= 0.94
    assert share(figures.recall["cold-cache"]) >= 0.94
    answers = ways["forensics"]
    preempted = [answer.preempted for answer in answers]
    assert sum(preempted) == 21
    assert [answer.regime for answer in answers] == preempted
    # Spells of it that are less than a regime are reported too, as such.
    spells = reported(answers, "preemption-cliff", "preemption-thrash")
    precision, recall = present(spells, preempted)
    assert share(recall) == 1.0
    assert share(precision) >= 0.86


def test_the_regime_as_a_cause_is_told_better_than_by_the_best_rule(ways):
    answers = [*ways["forensics"], *map(diagnose, incidents(FOLDER, "development"))]
    broken = [answer.broken for answer in answers]
    ours = errors(["preemption-cliff" in answer.named for answer in answers], broken)
    rule = errors([answer.ruled for answer in answers], broken)
    assert sum(broken) == 50
    for mine, theirs in zip(ours, rule, strict=True):
        assert share(mine) < share(theirs)


def test_counting_artefacts_are_reported(ways):
    answers = ways["forensics"]
    said = reported(answers, "counting-artifact")
    precision, recall = present(said, [answer.miscounted for answer in answers])
    assert share(recall) >= 0.75
    assert share(precision) >= 0.6


def test_controls_get_no_cause_of_a_fall(ways):
    alarms, _ = score(ways["forensics"]).false_alarms
    assert alarms <= 1


def test_no_preemption_is_named_where_none_was_seen(ways):
    named = [a for a in ways["forensics"] if a.cause in ("preemption-cliff", "preemption-thrash")]
    assert named
    assert all(answer.preemptions > 0 for answer in named)


def test_confidence_keeps_its_word(ways):
    figures = score(ways["forensics"])
    assert figures.brier is not None
    assert figures.ece is not None
    assert figures.brier <= 0.11
    assert figures.ece <= 0.10


def test_calibration_error_by_hand_and_by_chance():
    # Two bins: 0.95 said and 3 of 4 right, 0.75 said and 1 of 2 right: (4 x 0.2 + 2 x 0.25) / 6.
    said = np.array([0.95] * 4 + [0.75] * 2)
    right = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    assert calibration_error(said, right) == pytest.approx((4 * 0.2 + 2 * 0.25) / 6)
    # Of one answer said at 0.9: off by 0.1 in nine of ten draws and by 0.9 in one.
    mean, most = chance_error(np.array([0.9]), draws=20_000)
    assert mean == pytest.approx(0.18, abs=0.01)
    assert most == pytest.approx(0.9)


def test_wilson_interval_of_nine_in_ten():
    low, high = wilson(9, 10)
    assert low == pytest.approx(0.5958, abs=1e-4)
    assert high == pytest.approx(0.9821, abs=1e-4)


def test_real_falls_lean_the_right_way():
    """Real recordings, by their readings: decided ones are right, and no class leans wrongly."""
    rows = json.loads((FOLDER / "recordings.json").read_text("utf-8"))
    answer_at = combiner().answer_at
    decided = right = 0
    for row in rows:
        odds, _ = combiner().weigh({n: Reading(v) for n, v in row["readings"].items()})
        chance = probability(odds)
        if max(chance, 1 - chance) >= answer_at:
            decided += 1
            right += (chance >= 0.5) == (row["capacity_share"] >= 0.5)
        if row["recording"].startswith("c-"):
            assert chance < 0.3, row["recording"]
    assert decided >= 10
    assert right / decided >= 0.9


def test_the_weights_hold_on_falls_of_the_model_server_they_were_not_fitted_to():
    rows = json.loads((FOLDER / "simulated.json").read_text("utf-8"))
    rows = [row for row in rows if odd_seed(row)]
    chances = []
    for row in rows:
        odds, _ = combiner().weigh({n: Reading(v) for n, v in row["readings"].items()})
        chances.append((probability(odds), row["capacity_share"] >= 0.5))
    capacity = [p for p, truth in chances if truth]
    diversity = [p for p, truth in chances if not truth]
    wins = sum((c > d) + 0.5 * (c == d) for c in capacity for d in diversity)
    assert wins / (len(capacity) * len(diversity)) >= 0.84


def test_the_weights_hold_on_real_servers_under_loads_they_were_not_fitted_to():
    found = json.loads((FOLDER / "live.json").read_text("utf-8"))
    unseen = list(filter(is_unseen, found))
    decided = right = 0
    for row in unseen:
        odds, _ = combiner().weigh({n: Reading(v) for n, v in row["readings"].items()})
        chance = probability(odds)
        if max(chance, 1 - chance) >= combiner().answer_at:
            decided += 1
            right += (chance >= 0.5) == (row["capacity_share"] >= 0.5)
    assert len(unseen) == 42
    assert decided >= 20
    assert right / decided >= 0.85


def test_rows_of_real_servers_are_read_as_they_are_kept():
    archive = FOLDER / "live.tar.xz"
    read = [row for metrics, truth in recordings(archive) for row in rows(metrics, truth)]
    assert read == json.loads((FOLDER / "live.json").read_text("utf-8"))
