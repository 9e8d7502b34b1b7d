"""A fall in its parts: what the counters made, what an event took, and how the rest is shared."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.attribution import as_counted, attribute
from forensics.attribution.attribute import _split
from forensics.attribution.combiner import combiner, probability
from forensics.attribution.readings import Reading
from forensics.episodes import Span
from forensics.timeline import Histogram, Mark
from tests.attribution.hand_made import (
    START_S,
    STEP_S,
    fall_of,
    halves,
    make_timeline,
    traffic,
    unobserved,
)


def values(found):
    return {part.part: part.value for part in found.parts}


def log_odds(found):
    return {witness.name: witness.log_odds for witness in found.witnesses}


@given(
    before=st.floats(0.2, 1.0),
    share=st.floats(0.1, 0.9),
    chance=st.floats(0.0, 1.0),
    decided=st.booleans(),
)
def test_a_split_sums_to_the_rest_and_lies_in_its_interval(before, share, chance, decided):
    rest = before * share
    parts = _split(rest, chance, decided)
    assert sum(part.value for part in parts) == pytest.approx(rest)
    for part in parts:
        assert -1e-9 <= part.low <= part.value + 1e-9
        assert part.value <= part.high + 1e-9 <= rest + 1e-6


def test_parts_come_in_order_and_sum_to_the_fall():
    timeline = make_timeline(traffic())
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert [part.part for part in found.parts] == ["diversity", "capacity", "cold", "counting"]
    assert sum(part.value for part in found.parts) == pytest.approx(0.4)
    assert found.basis == "score"


def test_longer_prompts_with_the_same_hits_are_a_mix_shift():
    # 800 hit tokens of 1000, then 800 of 2000: not one hit was lost.
    timeline = make_timeline(traffic(hit=(0.8, 0.4), prompt=(1000.0, 2000.0)))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert "longer_prompts_same_hits" in log_odds(found)
    assert found.decided
    assert found.share("diversity") > 0.8


def test_nothing_is_evicted_before_the_pool_was_filled_once():
    marks = (Mark(START_S, "start", "server start", None),)
    # 40 scrapes write at most 40 x (10,000 + 2,000) tokens; the pool holds a million.
    timeline = make_timeline(traffic(), marks=marks, pool_tokens=1_000_000)
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert log_odds(found)["pool_never_filled"] == -6.0
    assert found.decided
    assert values(found)["capacity"] < 0.01


@pytest.mark.parametrize(("first", "certain"), [(2000.0, False), (0.0, True)])
def test_what_was_written_before_the_first_scrape_is_not_known(first, certain):
    # Scraped from five minutes after the start on; the first scrape of counters has no amount.
    columns = traffic()
    for name in ("prompt_tokens", "cached_tokens", "computed_tokens", "generation_tokens"):
        columns[name] = [np.nan, first, *columns[name][2:]]
    marks = (Mark(START_S - 300, "start", "server start", None),)
    timeline = unobserved(make_timeline(columns, marks=marks, pool_tokens=1_000_000))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert ("pool_never_filled" in log_odds(found)) == certain


def test_sharing_of_running_requests_lost_is_diversity():
    # A running request holds 0.35 of its own tokens before, all of them after; hits go to zero.
    columns = traffic(hit=(0.85, 0.0), usage=(0.0308, 0.088))
    timeline = make_timeline(columns, pool_tokens=100_000)
    found = attribute(timeline, fall_of(timeline, 0.85, 0.0), timeline.diary.epochs[0])
    odds = log_odds(found)
    assert odds["sharing_of_running_lost"] == -2.0
    assert odds["level_near_zero"] < -1.0
    assert found.decided
    assert found.share("diversity") > 0.95


def test_an_exhausted_pool_with_like_prompts_is_capacity():
    columns = traffic(hit=(0.85, 0.2), usage=(0.3, 0.99), running=(8.0, 60.0))
    columns["preemptions"] = halves(0.0, 2.0)
    columns["waiting"] = halves(0.0, 20.0)
    timeline = make_timeline(columns)
    found = attribute(timeline, fall_of(timeline, 0.85, 0.2), timeline.diary.epochs[0])
    assert log_odds(found)["exhausted_by_like_requests"] > 0.5
    assert found.share("capacity") > found.share("diversity")


def test_a_restart_takes_what_comes_back():
    rate = [0.8] * 20 + [0.2] * 5 + [0.8] * 15
    columns = traffic()
    columns["hit_rate"] = rate
    middle = START_S + STEP_S * 20
    marks = (Mark(middle + 5, "restart", "server started again", None),)
    timeline = make_timeline(columns, marks=marks)
    low_end = START_S + STEP_S * 25
    episode = fall_of(timeline, 0.8, 0.2, end=low_end, recovered=True, after=Span(middle, low_end))
    found = attribute(timeline, episode, timeline.diary.epochs[0])
    assert found.basis == "event"
    assert values(found)["cold"] == pytest.approx(0.6)
    assert found.share("cold") == pytest.approx(1.0)


def test_an_old_start_is_no_event():
    marks = (Mark(START_S - 3600, "start", "server start", None),)
    timeline = make_timeline(traffic(), marks=marks)
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert values(found)["cold"] == 0.0


def test_a_fall_of_the_counters_alone_is_counting():
    columns = traffic(hit=(0.8, 0.8))
    # From the middle on a blocked request is looked up four times, and misses.
    columns["queries"] = [q * f for q, f in zip(columns["queries"], halves(1, 5), strict=True)]
    columns["counter_hit_rate"] = halves(0.8, 0.16)
    timeline = make_timeline(columns, versions=("0.20.2",))
    episode = fall_of(timeline, 0.8, 0.16, signal="counter_hit_rate")
    found = attribute(timeline, episode, timeline.diary.epochs[0])
    assert found.share("counting") == pytest.approx(1.0)


def test_the_fall_people_saw_is_that_of_the_counters():
    columns = traffic(hit=(0.8, 0.6))
    columns["hits"] = [h * f for h, f in zip(columns["hits"], halves(1, 0.5), strict=True)]
    columns["counter_hit_rate"] = halves(0.8, 0.3)
    timeline = make_timeline(columns, versions=("0.20.2",))
    seen = as_counted(timeline, fall_of(timeline, 0.8, 0.6))
    assert seen.signal == "counter_hit_rate"
    assert seen.before - seen.level == pytest.approx(0.5)
    found = attribute(timeline, seen, timeline.diary.epochs[0])
    assert values(found)["counting"] == pytest.approx(0.3)
    assert sum(values(found).values()) == pytest.approx(0.5)


def test_agreeing_counters_change_nothing():
    timeline = make_timeline(traffic())
    episode = fall_of(timeline, 0.8, 0.4)
    assert as_counted(timeline, episode) is episode


def test_without_tokens_by_source_inflated_lookups_only_bound_it():
    columns = traffic(hit=(0.8, 0.2))
    del columns["cached_tokens"], columns["computed_tokens"]
    columns["queries"] = [q * f for q, f in zip(columns["queries"], halves(1, 3), strict=True)]
    timeline = make_timeline(columns, versions=("0.20.2",))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.2), timeline.diary.epochs[0])
    counting = next(part for part in found.parts if part.part == "counting")
    # Three lookups per prompt token: the two extra ones hit always or never, so the true rate is
    # between 0 and 0.6.
    assert counting.low == pytest.approx(0.0)
    assert counting.high == pytest.approx(0.4)
    assert 0.0 < counting.value < 0.2


def repeated(before, after, times, **more):
    """A fall of the counters in which the low half looks everything up several times."""
    columns = traffic(hit=(before, after))
    del columns["cached_tokens"], columns["computed_tokens"]
    columns["queries"] = [q * f for q, f in zip(columns["queries"], halves(1, times), strict=True)]
    timeline = make_timeline(columns | more, versions=("0.14.1",))
    return attribute(timeline, fall_of(timeline, before, after), timeline.diary.epochs[0])


def test_a_fall_that_counting_alone_may_have_made_is_not_decided():
    # Ten lookups per prompt token, 0.2 of them hits: the true rate lies between 0 and 1.
    found = repeated(0.8, 0.2, 10)
    assert found.perhaps_counted
    assert not found.decided
    # 1.5 lookups per token, 0.2 of them hits: at most 0.3, so 0.5 was lost in any case.
    assert not repeated(0.8, 0.2, 1.5).perhaps_counted


def test_computed_tokens_of_finished_requests_tell_the_true_rate():
    # Of 1,000 prompt tokens 700 were computed after the change: the rate is 0.3, not 0.2.
    found = repeated(
        0.8, 0.2, 10, prompt_len=[1000.0] * 40, computed_len=halves(200, 700), e2e_s=[20.0] * 40
    )
    assert not found.perhaps_counted
    assert values(found)["counting"] == pytest.approx(0.1)
    # Requests of 200 s began before the change for most of the 300 s after it.
    late = repeated(
        0.8, 0.2, 10, prompt_len=[1000.0] * 40, computed_len=halves(200, 700), e2e_s=[200.0] * 40
    )
    assert late.perhaps_counted


def test_blocks_became_tokens_with_0_9():
    columns = traffic(hit=(0.8, 0.7), prompt=(100.0, 100.0))
    del columns["cached_tokens"], columns["computed_tokens"]
    timeline = make_timeline(columns, versions=("0.8.5", "0.9.2"))
    found = attribute(timeline, fall_of(timeline, 0.8, 0.7), timeline.diary.epochs[1])
    # Half a block of 16 per prompt of 100 tokens came into the denominator: 8 % of 0.8.
    assert values(found)["counting"] == pytest.approx(0.064)


def test_everyone_missing_alike_speaks_for_diversity():
    edges = np.array([10.0, 100.0, 500.0, 1000.0, np.inf])
    times = START_S + STEP_S * np.arange(1, 41)
    before = np.array([0.0, 6.0, 9.0, 10.0, 10.0])
    alike = np.array([0.0, 0.0, 0.0, 10.0, 10.0])
    counts = np.array([before] * 20 + [alike] * 20)
    histogram = Histogram(edges, times, counts, "vllm:request_prefill_kv_computed_tokens")
    timeline = make_timeline(traffic(), histograms={"computed_len": histogram})
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    witness = next(w for w in found.witnesses if w.name == "computed_spread")
    # Shares 0.6, 0.3, 0.1 have an entropy of 0.898 nats; one bucket has none.
    assert witness.before == pytest.approx(0.898, abs=1e-3)
    assert witness.after == pytest.approx(0.0)
    assert witness.log_odds < 0
    assert log_odds(found)["nearly_all_hit"] < 0


def test_few_requests_stand_where_their_weight_puts_them():
    columns = traffic()
    columns["first_tokens"] = [0.5] * 40  # ten on either side: five sixths are taken off
    timeline = make_timeline(columns)
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    sizes = [abs(witness.log_odds) for witness in found.witnesses]
    assert "thin_traffic" in log_odds(found)
    assert sizes == sorted(sizes, reverse=True)


def test_prompts_that_grow_while_hits_creep_down_are_no_mix_shift():
    # Sessions that age: as above, but the fall takes its whole time.
    columns = traffic(hit=(0.8, 0.4), prompt=(1000.0, 2000.0))
    columns["hit_rate"] = [0.8] * 20 + list(np.linspace(0.8, 0.0, 20))
    timeline = make_timeline(columns)
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    assert "longer_prompts_same_hits" not in log_odds(found)


def test_what_was_not_observed_says_nothing():
    timeline = make_timeline(
        {
            "hit_rate": halves(0.8, 0.4),
            "hit_weight": [1000.0] * 40,
            "queries": [1000.0] * 40,
            "hits": halves(800.0, 400.0),
        }
    )
    found = attribute(timeline, fall_of(timeline, 0.8, 0.4), timeline.diary.epochs[0])
    names = {witness.name for witness in found.witnesses}
    assert names <= {"sharp_onset", "fall_completed", "level_near_zero", "few_witnesses"}
    assert not found.decided
    assert sum(values(found).values()) == pytest.approx(0.4)


def test_few_witnesses_are_less_sure_than_they_would_be_together():
    readings = {"sharp_onset": Reading(0.0), "prompt_length_mix": Reading(0.0)}
    weights = combiner().weights
    core = {name: w.reach for name, w in weights.items() if w.core}
    alone = combiner().intercept + sum(weights[n].log_odds(0.0) for n in readings)
    heard = core["sharp_onset"] / sum(core.values())
    odds, witnesses = combiner().weigh(readings)
    assert odds == pytest.approx(alone * math.sqrt(heard))
    few = next(w for w in witnesses if w.name == "few_witnesses")
    assert few.value == pytest.approx(heard)
    assert few.log_odds == pytest.approx(odds - alone)


def test_all_that_is_always_read_is_enough():
    readings = {name: Reading(0.5) for name, w in combiner().weights.items() if w.core}
    _, witnesses = combiner().weigh(readings)
    assert {w.name for w in witnesses} == set(readings)


def test_shipped_weights_keep_the_signs_of_physics():
    signs = {
        "sharp_onset": -1, "fall_completed": -1, "pool_turnover": 1, "prompt_length_mix": -1,
        "load_rise": 1, "hits_held": 1, "exhausted_by_like_requests": 1,
        "rate_follows_residence": 1, "idle_hits": 1, "loss_beyond_idle": -1,
        "hit_tokens_per_request": 1, "prompts_longer": -1, "prompts_shorter": -1,
        "unshared_footprint": -1, "level_near_zero": -1, "computed_spread": 1,
        "nearly_all_hit": 1, "reuse_gap_over_idle": 1,
    }  # fmt: skip
    weights = combiner().weights
    assert set(weights) <= set(signs)
    for name, weight in weights.items():
        assert weight.slope * signs[name] > 0, name
    assert probability(0.0) == 0.5
    assert 0.6 <= combiner().answer_at <= 0.9
    # No single witness decides alone.
    for name, weight in weights.items():
        reach = max(abs(weight.log_odds(weight.low)), abs(weight.log_odds(weight.high)))
        assert reach < 2.5, name


@pytest.mark.parametrize(("version", "counted"), [("0.10.2", 0.2), ("0.11.2", 0.0)])
def test_resumed_requests_raised_the_rate_until_0_11_1(version, counted):
    """A storm ends: hits of preempted requests on their own blocks go, the cache is as ever."""
    columns = traffic(hit=(0.4, 0.2))
    del columns["cached_tokens"], columns["computed_tokens"]
    # Every third prompt was looked up once more, when it was resumed, and hit: of 4/3 lookups
    # 0.2 + 1/3 are hits, 40 %. Without them 20 %, as after the storm.
    columns["queries"] = [q * f for q, f in zip(columns["queries"], halves(4 / 3, 1), strict=True)]
    columns["finished"] = columns["first_tokens"]
    columns["preemptions"] = [
        n / 3 * f for n, f in zip(columns["finished"], halves(1, 0), strict=True)
    ]
    columns["generation_tokens"] = [0.0] * len(columns["queries"])
    timeline = make_timeline(columns, versions=(version,))
    found = attribute(timeline, fall_of(timeline, 0.4, 0.2), timeline.diary.epochs[0])
    if counted:
        assert values(found)["counting"] == pytest.approx(counted, abs=1e-6)
    else:
        assert values(found)["counting"] < 0.1
