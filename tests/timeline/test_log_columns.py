"""Stats lines and counted lines on the log's own cadence."""

import numpy as np
import pytest

from forensics.timeline.logs import columns_from_log, counted_lines, reported_by_log


def stats(at, **fields):
    return (at, "stats_periodic", fields)


def column(evidence, name):
    return columns_from_log(evidence.events, evidence.sources).get(name)


def test_percent_becomes_a_fraction(evidence_of):
    evidence = evidence_of(events=[stats(0.0, kv_usage_pct=97.5, prefix_hit_rate_pct=43.5)])
    reported = reported_by_log(evidence.events)
    assert reported.columns["kv_usage"].tolist() == [0.975]
    assert reported.columns["logged_hit_rate"].tolist() == [0.435]


def test_absent_fields_are_unknown_and_not_zero(evidence_of):
    evidence = evidence_of(events=[stats(0.0, running=3), stats(10.0, running=4, waiting=1)])
    waiting = column(evidence, "waiting")
    assert np.isnan(waiting[0])
    assert waiting[1] == 1.0


def test_mean_throughput_times_interval_is_an_amount(evidence_of):
    evidence = evidence_of(
        events=[stats(0.0, generation_tps=10.0), stats(10.0, generation_tps=20.0)]
    )
    assert column(evidence, "generation_tokens")[1] == 200.0


def test_throughput_after_a_gap_is_a_mean_over_its_own_interval(evidence_of):
    """An idle engine prints nothing for 50 s; the line after it speaks of ten seconds."""
    times = (0.0, 10.0, 20.0, 30.0, 80.0, 92.0)
    evidence = evidence_of(events=[stats(at, generation_tps=10.0) for at in times])
    amounts = column(evidence, "generation_tokens")
    assert amounts[~np.isnan(amounts)].tolist() == [100.0, 100.0, 100.0, 100.0, 100.0]


def warned(at, total):
    return (at, "preemption", {"total_cumulative": total})


def test_v0_prints_every_fiftieth_preemption(evidence_of):
    """Warnings for the 1st, 51st and 101st: 1, 50 and 50 preemptions; nothing tells when."""
    events = [stats(0.0, running=1), stats(10.0, running=1), stats(20.0, running=1)]
    events += [warned(1.0, 1), warned(11.0, 51), warned(19.0, 101)]
    evidence = evidence_of(events=events)
    assert column(evidence, "preemption_lower_bound").tolist() == [1.0, 50.0, 50.0]


def test_between_two_warnings_preemptions_lie_where_the_pool_was_full(evidence_of):
    """The 2nd to the 51st: the pool is full in five of the eight lines up to the warning."""
    usage = [40, 99, 98, 60, 30, 97, 99, 99, 20]
    events = [stats(10.0 * at, running=8, kv_usage_pct=pct) for at, pct in enumerate(usage)]
    events += [warned(9.0, 1), warned(70.0, 51)]
    evidence = evidence_of(events=events)
    found = column(evidence, "preemption_lower_bound").tolist()
    assert found == [0.0, 11.0, 10.0, 0.0, 0.0, 10.0, 10.0, 10.0, 0.0]


@pytest.mark.parametrize(
    ("totals", "amounts"),
    [
        ([151], [1.0]),  # the log begins in the middle of a life
        ([151, 201], [1.0, 50.0]),
        ([1, 151], [1.0, 150.0]),  # two warnings were lost
        ([51, 1], [1.0, 1.0]),  # a new process
    ],
)
def test_only_what_two_warnings_enclose_is_proven(evidence_of, totals, amounts):
    events = [warned(10.0 * at, total) for at, total in enumerate(totals, 1)]
    counted, _ = counted_lines(evidence_of(events=events).events)["preemption_lower_bound"]
    assert [item.amount for item in counted] == amounts


def test_line_of_articles_counts_as_one_preemption_each(evidence_of):
    events = [(1.0, "blog_preempted", {"seq_id": "7"}), (2.0, "blog_preempted", {"seq_id": "8"})]
    amounts, kind = counted_lines(evidence_of(events=events).events)["preemption_lower_bound"]
    assert kind == "blog_preempted"
    assert sum(item.amount for item in amounts) == 2.0


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"status": 503, "path_class": "api"}, 1.0),
        ({"status": 429, "path_class": "api", "count": 12}, 12.0),
        ({"status": 503, "path_class": "probe"}, None),
        ({"status": 200, "path_class": "api"}, None),
    ],
)
def test_refusals_are_429_and_503_of_the_api(evidence_of, fields, refused):
    counted = counted_lines(evidence_of(events=[(1.0, "http_access", fields)]).events)
    if refused is None:
        assert "rejected" not in counted
    else:
        assert counted["rejected"][0] == [(1.0, 1.0, refused)]


def test_log_without_stats_lines_has_no_columns(evidence_of):
    evidence = evidence_of(events=[(0.0, "process_start", {})])
    assert columns_from_log(evidence.events, evidence.sources) is None


def test_lines_with_the_same_second_count_once(evidence_of):
    evidence = evidence_of(events=[stats(5.0, running=1), stats(5.0, running=9)])
    assert reported_by_log(evidence.events).times.tolist() == [5.0]


def test_requests_swapped_out_were_preempted(evidence_of):
    """Up to 0.4.2 no line says so: 0, 3, 2, 6 swapped is at least 3 and then 4 preemptions."""
    lines = [stats(10.0 * at, running=8, swapped=count) for at, count in enumerate((0, 3, 2, 6))]
    evidence = evidence_of(events=lines)
    assert column(evidence, "preemption_lower_bound").tolist() == [0.0, 3.0, 0.0, 4.0]


def test_nothing_swapped_says_nothing_of_preemptions(evidence_of):
    evidence = evidence_of(events=[stats(0.0, swapped=0), stats(10.0, swapped=0)])
    columns = columns_from_log(evidence.events, evidence.sources)
    assert "preemption_lower_bound" not in columns.values


def test_lines_of_articles_count_as_running_swapped_and_preempted(evidence_of):
    events = [
        (0.0, "blog_running_swapped", {"running": 128, "swapped": 0}),
        (10.0, "blog_running_swapped", {"running": 120, "swapped": 14}),
        (10.0, "blog_preempted", {"request_id": "7", "source": "GPU", "target": "CPU"}),
    ]
    evidence = evidence_of(events=events)
    assert column(evidence, "running").tolist() == [128.0, 120.0]
    assert column(evidence, "swapped").tolist() == [0.0, 14.0]
    assert column(evidence, "preemption_lower_bound").tolist() == [0.0, 1.0]
    origin = columns_from_log(evidence.events, evidence.sources).origins["running"]
    assert origin.series == "blog_running_swapped"
