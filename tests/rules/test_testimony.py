"""The witnesses behind a split are shown, with what each of them moved."""

import math
from dataclasses import replace

import pytest

from forensics.attribution import Attribution, Witness
from forensics.attribution.combiner import combiner
from forensics.catalog.messages import LANGUAGES, catalogue
from rules.testimony import _READ, spoken
from tests.verdict.test_weigh import fall

SAID = (
    Witness("sharp_onset", 0.9, None, None, -1.2),
    Witness("load_rise", 0.4, 4.0, 6.0, 0.7),
    Witness("idle_hits", 0.5, None, None, 0.1),
)


def case():
    attribution = Attribution(0.8, 0.3, (), decided=True, basis="score", witnesses=SAID)
    return replace(fall(), attribution=attribution)


@pytest.mark.parametrize(
    ("part", "for_", "against"),
    [("diversity", "sharp_onset", "load_rise"), ("capacity", "load_rise", "sharp_onset")],
)
def test_each_side_shows_what_spoke_for_it(part, for_, against):
    heard, contrary = spoken(case(), part)
    assert [one.signal for one in heard] == [for_]
    assert [one.signal for one in contrary] == [against]


def test_figures_are_those_of_the_witness():
    ((rate,), (sharp,)) = spoken(case(), "capacity")
    assert (rate.before, rate.after, rate.unit) == (4.0, 6.0, "requests")
    assert (sharp.before, sharp.after, sharp.unit) == (None, 0.9, "ratio")
    assert rate.note.key == "note.odds_capacity"
    assert rate.note.values["odds"] == pytest.approx(math.exp(0.7))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_witness_has_a_name_and_a_unit(lang):
    assert set(combiner().weights) <= set(_READ)
    assert {f"reports.signal.{name}" for name in _READ} <= set(catalogue(lang))
