"""Opinions weighed: who leads, who contributes, and when nobody is named."""

from dataclasses import replace

import polars as pl
import pytest

from forensics.attribution import Figures
from forensics.catalog.messages import Message
from forensics.diary import EngineDiary, Epoch
from forensics.episodes import Episode, Span
from forensics.timeline import EngineTimeline
from forensics.timeline.grid import SCHEMA
from forensics.verdict import HEALTHY, INSUFFICIENT, Judged, weigh
from rules.interface import Case, Opinion, Severity

EMPTY = pl.DataFrame(schema=SCHEMA)


def engine(name="0"):
    epoch = Epoch(None, None)
    return EngineTimeline(
        name, None, 10.0, EMPTY, EMPTY, {}, (), EngineDiary(name, None, name, (epoch,))
    )


def fall(before=0.8, after=0.3, at=1000.0, name="0", recovered=False):
    episode = Episode(
        engine=name, signal="hit_rate", onset=(at - 10.0, at), end=at + 500.0, recovered=recovered,
        baseline=Span(at - 500.0, at - 10.0), after=Span(at - 10.0, at + 500.0),
        before=before, level=after, error=0.01,
    )  # fmt: skip
    return case(name, episode)


def case(name="0", episode=None):
    timeline = engine(name)
    return Case(
        timeline=timeline, epoch=timeline.diary.epochs[0], episode=episode, attribution=None,
        window=(0.0, 2000.0), before=None, after=None, fleet=(timeline,),
    )  # fmt: skip


def opinion(
    cause, weight, *, share=None, severity=Severity.WARNING, rule="XX1", onset=None, **more
):
    return Opinion(
        rule, cause, weight, severity, Message(f"said.{cause}"), share=share, onset=onset, **more
    )


def test_cause_that_took_most_of_the_fall_leads():
    one = fall()
    verdict, roles = weigh(
        [
            Judged(one, opinion("eviction-pressure", 0.6, share=0.3)),
            Judged(one, opinion("prefix-diversity-loss", 0.8, share=0.7, onset=(990.0, 1000.0))),
        ],
        [one],
        (),
    )
    assert verdict.cause == "prefix-diversity-loss"
    assert verdict.confidence == 0.8
    assert verdict.onset == (990.0, 1000.0)
    assert [(c.cause, c.share) for c in verdict.contributing] == [("eviction-pressure", 0.3)]
    assert verdict.runner_up.cause == "eviction-pressure"
    assert [item.role for item in roles][:2] == ["primary", "contributing"]


def test_points_are_added_over_several_falls():
    small, large = fall(0.8, 0.7), fall(0.7, 0.1, at=1500.0)
    verdict, _ = weigh(
        [
            Judged(small, opinion("prefix-diversity-loss", 0.9, share=1.0)),
            Judged(large, opinion("preemption-cliff", 0.9, share=1.0)),
        ],
        [small, large],
        (),
    )
    assert verdict.cause == "preemption-cliff"
    # 0.1 of 0.7 points are the other's: below a fifth, no part of the answer.
    assert verdict.contributing == ()


def test_what_stays_leads_over_a_dip_that_came_back():
    """A restart emptied the cache for 500 s of 2,000; what came later is still gone."""
    dip, lasting = fall(0.8, 0.1, recovered=True), fall(0.8, 0.5, at=2000.0)
    until = pl.DataFrame({"time": [0.0, 3000.0]})
    dip = replace(dip, timeline=replace(dip.timeline, grid=until))
    cold = Judged(dip, opinion("cold-cache", 0.97, share=1.0))
    later = Judged(lasting, opinion("preemption-cliff", 0.9, share=1.0))
    verdict, _ = weigh([cold, later], [dip, lasting], ())
    assert verdict.cause == "preemption-cliff"
    assert [item.cause for item in verdict.contributing] == ["cold-cache"]
    alone, _ = weigh([cold], [dip], ())
    assert alone.cause == "cold-cache"


def test_share_of_a_fifth_is_part_of_the_answer():
    one = fall()
    for share, named in ((0.2, True), (0.19, False)):
        verdict, _ = weigh(
            [
                Judged(one, opinion("preemption-cliff", 0.9, share=0.8)),
                Judged(one, opinion("cold-cache", 0.9, share=share)),
            ],
            [one],
            (),
        )
        assert bool(verdict.contributing) is named


def test_shares_of_overlapping_causes_sum_to_one():
    one = fall()
    verdict, _ = weigh(
        [
            Judged(one, opinion("preemption-cliff", 0.9, share=1.0)),
            Judged(one, opinion("long-context-hog", 0.9, share=1.0, rule="XX2")),
        ],
        [one],
        (),
    )
    assert verdict.contributing[0].share == pytest.approx(0.5)


def test_less_likely_than_not_is_not_named():
    one = fall()
    verdict, _ = weigh(
        [
            Judged(one, opinion("eviction-pressure", 0.48, share=0.55)),
            Judged(one, opinion("prefix-diversity-loss", 0.45, share=0.45)),
        ],
        [one],
        (),
    )
    assert verdict.cause == INSUFFICIENT
    assert [cause for cause, _ in verdict.candidates] == [
        "eviction-pressure",
        "prefix-diversity-loss",
    ]
    assert verdict.summary.values["first"] == "eviction-pressure"


def test_fall_that_nobody_explains_is_said_to_be_one():
    one = fall()
    verdict, _ = weigh([], [one], ())
    assert verdict.cause == INSUFFICIENT
    assert verdict.onset == one.episode.onset
    assert verdict.missing


def test_nothing_happened_and_enough_was_seen():
    verdict, roles = weigh([], [], ())
    assert verdict.cause == HEALTHY
    assert verdict.onset is None
    assert roles == ()


def test_nothing_happened_but_too_little_was_seen():
    verdict, _ = weigh([], [], ("prefix-cache counters",))
    assert verdict.cause == INSUFFICIENT
    assert verdict.missing == ("prefix-cache counters",)


def test_strongest_state_leads_without_a_fall():
    window = case()
    verdict, _ = weigh(
        [
            Judged(window, opinion("seat-limit", 0.9)),
            Judged(window, opinion("client-aborts", 0.7)),
        ],
        [],
        (),
    )
    assert verdict.cause == "seat-limit"
    assert verdict.runner_up.cause == "client-aborts"
    assert verdict.contributing == ()  # no fall, no share


def test_what_stops_service_leads_over_what_slows_it():
    window = case()
    verdict, _ = weigh(
        [
            Judged(window, opinion("seat-limit", 0.95)),
            Judged(window, opinion("preemption-thrash", 0.8, severity=Severity.CRITICAL)),
        ],
        [],
        (),
    )
    assert verdict.cause == "preemption-thrash"


def test_dead_engine_leads_over_any_fall():
    one = fall()
    verdict, _ = weigh(
        [
            Judged(one, opinion("prefix-diversity-loss", 0.97, share=1.0)),
            Judged(case(), opinion("engine-crash", 0.95, severity=Severity.CRITICAL)),
        ],
        [one],
        (),
    )
    assert verdict.cause == "engine-crash"


def test_state_beside_a_fall_is_a_finding_and_no_share():
    one = fall()
    verdict, roles = weigh(
        [
            Judged(one, opinion("prefix-diversity-loss", 0.9, share=1.0)),
            Judged(case(), opinion("seat-limit", 0.9)),
        ],
        [one],
        (),
    )
    assert verdict.cause == "prefix-diversity-loss"
    assert [c.cause for c in verdict.contributing] == []
    assert "seat-limit" in {item.judged.opinion.cause for item in roles}


def test_verdict_names_the_engine_that_fell():
    one = fall(name="b:8000")
    verdict, _ = weigh([Judged(one, opinion("eviction-pressure", 0.9, share=1.0))], [one], ())
    assert verdict.engine == "b:8000"


def test_order_of_opinions_changes_nothing():
    one, other = fall(), fall(0.7, 0.5, at=1500.0, name="1")
    judged = [
        Judged(one, opinion("eviction-pressure", 0.6, share=0.5, rule="PC102")),
        Judged(one, opinion("prefix-diversity-loss", 0.6, share=0.5, rule="PC103")),
        Judged(other, opinion("eviction-pressure", 0.6, share=1.0, rule="PC102")),
        Judged(case(), opinion("seat-limit", 0.7, rule="SCH301")),
    ]
    verdict, roles = weigh(judged, [one, other], ())
    again, other_roles = weigh(judged[::-1], [one, other], ())
    assert again == verdict
    assert [r.judged.opinion for r in other_roles] == [r.judged.opinion for r in roles]


def test_every_opinion_has_a_role():
    one = fall()
    judged = [
        Judged(one, opinion("eviction-pressure", 0.9, share=1.0)),
        Judged(one, replace(opinion("prefix-diversity-loss", 0.05, share=0.0), rule_id="PC103")),
        Judged(case(), opinion("seat-limit", 0.1)),
    ]
    _, roles = weigh(judged, [one], ())
    assert len(roles) == 3
    allowed = {"primary", "contributing", "runner-up", "also-observed", "rejected"}
    assert {item.role for item in roles} <= allowed


def slow():
    one = fall()
    risen = replace(one.episode, signal="ttft_s", before=0.2, level=3.0)
    return replace(one, episode=risen, after=Figures(500.0, 50))


def test_state_leads_where_no_hit_rate_was_ever_seen():
    """A V0 server without prefix caching: nothing speaks of its hits, all of its preemptions."""
    thrash = Judged(case(), opinion("preemption-thrash", 0.95, severity=Severity.CRITICAL))
    verdict, _ = weigh([thrash], [], (), unseen=("a hit rate",))
    assert verdict.cause == "preemption-thrash"
    assert verdict.missing == ("a hit rate",)
    verdict, _ = weigh([thrash], [], ("prefix-cache counters",))
    assert verdict.cause == INSUFFICIENT  # the printed rate fell, and thrash does not explain it


def test_without_a_hit_rate_nothing_is_called_healthy():
    verdict, _ = weigh([], [], (), unseen=("a hit rate",))
    assert verdict.cause == INSUFFICIENT
    assert verdict.missing == ("a hit rate",)


@pytest.mark.parametrize(
    ("cause", "severity", "onset", "leads"),
    [
        ("low-reuse-workload", Severity.INFO, (0.0, 0.0), False),
        ("caching-disabled", Severity.WARNING, (0.0, 0.0), False),
        ("cold-cache", Severity.INFO, (985.0, 995.0), True),  # as the restart did
        ("cold-cache", Severity.INFO, (300.0, 310.0), False),
        ("seat-limit", Severity.WARNING, (500.0, 510.0), True),
    ],
)
def test_what_was_so_all_along_does_not_hide_that_requests_became_slow(
    cause, severity, onset, leads
):
    state = Judged(case(), opinion(cause, 0.9, severity=severity, onset=onset))
    verdict, roles = weigh([state], [], (), slow())
    assert verdict.cause == (cause if leads else INSUFFICIENT)
    if not leads:
        assert verdict.summary.key == "verdict.slow_ttft"
        assert [item.role for item in roles] == ["also-observed"]


def test_health_read_off_averages_is_less_sure():
    seen, _ = weigh([], [], ())
    averaged, _ = weigh([], [], (), reserve=Message("verdict.healthy_averaged"))
    assert (seen.cause, seen.confidence) == ("healthy", 0.95)
    assert (averaged.cause, averaged.confidence) == ("healthy", 0.75)
    assert averaged.summary.key == "verdict.healthy_averaged"
