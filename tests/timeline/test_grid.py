"""Counters, gauges and histograms of one engine on its grid: figures checked by hand."""

import numpy as np
import pytest

from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary
from forensics.timeline.build import build_engine

STEP = 15.0


def series(metric, values, **labels):
    points = [(1000.0 + STEP * index, value) for index, value in enumerate(values)]
    return (metric, labels, [point for point in points if point[1] is not None])


@pytest.fixture
def timeline_of(evidence_of):
    def built(*rows, events=(), facts=(), **how):
        evidence = evidence_of(rows, events, facts, **how)
        engines = map_engines(evidence)
        (key,) = engines.keys
        return build_engine(evidence, engines, key, write_diary(evidence, engines, key, Options()))

    return built


def column(timeline, name):
    return timeline.grid[name].to_list()


def test_gauge_is_the_value_at_the_time(timeline_of):
    timeline = timeline_of(series("vllm:num_requests_running", [1, 5, 3]))
    assert column(timeline, "time") == [1000.0, 1015.0, 1030.0]
    assert column(timeline, "running") == [1.0, 5.0, 3.0]
    assert column(timeline, "waiting") == [None, None, None]
    assert not timeline.has("waiting")


def test_interval_hit_rate_is_growth_over_growth(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [100, 200, 400, 400]),
        series("vllm:prefix_cache_hits_total", [90, 140, 240, 240]),
    )
    assert column(timeline, "queries") == [None, 100.0, 200.0, 0.0]
    assert column(timeline, "hit_rate") == [None, 0.5, 0.5, None]  # no lookup, no rate
    assert column(timeline, "hit_weight") == [None, 100.0, 200.0, 0.0]


def test_a_missing_point_of_one_counter_is_made_up_for_by_the_next_of_both(timeline_of):
    # 90 hits of two intervals belong to the 150 lookups of both, not to the 50 of the last.
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [0, 100, 200, 250, 350]),
        series("vllm:prefix_cache_hits_total", [0, 40, None, 130, 180]),
    )
    assert column(timeline, "hit_rate") == [None, 0.4, None, 0.6, 0.5]


def test_counters_whose_first_amounts_span_other_times_make_no_rate(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [100, 200, 250, 350]),
        series("vllm:prefix_cache_hits_total", [50, None, 140, 190]),
    )
    assert column(timeline, "hit_rate") == [None, None, None, 0.5]


def test_more_hits_than_lookups_are_no_rate_above_one(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [100, 200]),
        series("vllm:prefix_cache_hits_total", [50, 170]),
    )
    assert column(timeline, "hit_rate") == [None, 1.0]


def test_hit_rate_does_not_notice_a_reset(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [1000, 1100, 40, 140]),
        series("vllm:prefix_cache_hits_total", [800, 880, 20, 100]),
    )
    assert column(timeline, "hit_rate") == [None, 0.8, 0.5, 0.8]
    assert [mark.kind for mark in timeline.marks] == ["restart"]
    assert timeline.marks[0].time == 1030.0


def test_tokens_by_source_are_preferred_to_lookups(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [0, 300]),
        series("vllm:prefix_cache_hits_total", [0, 30]),
        series("vllm:prompt_tokens_by_source_total", [0, 60], source="local_cache_hit"),
        series("vllm:prompt_tokens_by_source_total", [0, 30], source="local_compute"),
        series("vllm:prompt_tokens_by_source_total", [0, 10], source="external_kv_transfer"),
    )
    assert column(timeline, "hit_rate") == [None, 0.6]
    assert column(timeline, "counter_hit_rate") == [None, 0.1]
    assert column(timeline, "external_tokens") == [None, 10.0]


def test_renamed_twins_are_never_added(timeline_of):
    timeline = timeline_of(
        series("vllm:kv_cache_usage_perc", [0.2, 0.4]),
        series("vllm:gpu_cache_usage_perc", [0.2, 0.4]),
        series("vllm:prefix_cache_hits_total", [0, 50]),
        series("vllm:gpu_prefix_cache_hits_total", [0, 50]),
    )
    assert column(timeline, "kv_usage") == [0.2, 0.4]
    assert column(timeline, "hits") == [None, 50.0]
    assert timeline.origins["kv_usage"].series == "vllm:kv_cache_usage_perc"


def test_gauge_of_several_processes_is_the_largest_and_not_the_sum(timeline_of):
    timeline = timeline_of(
        series("vllm:num_requests_running", [4, 7], pid="11"),
        series("vllm:num_requests_running", [4, 6], pid="12"),
    )
    assert column(timeline, "running") == [4.0, 7.0]


def test_counters_of_several_processes_are_added(timeline_of):
    timeline = timeline_of(
        series("vllm:generation_tokens_total", [10, 20], pid="11"),
        series("vllm:generation_tokens_total", [10, 25], pid="12"),
    )
    assert column(timeline, "generation_tokens") == [None, 25.0]


def test_finished_leaves_out_aborts(timeline_of):
    timeline = timeline_of(
        series("vllm:request_success_total", [0, 5], finished_reason="stop"),
        series("vllm:request_success_total", [0, 2], finished_reason="length"),
        series("vllm:request_success_total", [0, 3], finished_reason="abort"),
    )
    assert column(timeline, "finished") == [None, 7.0]
    assert column(timeline, "aborted") == [None, 3.0]


def test_order_of_label_sets_changes_nothing(timeline_of):
    rows = [
        series("vllm:request_success_total", [1, 5, 8], finished_reason="stop"),
        series("vllm:request_success_total", [None, 2, 2], finished_reason="length"),
        series("vllm:prefix_cache_queries_total", [10, 30, 60]),
        series("vllm:prefix_cache_hits_total", [4, 14, 44]),
    ]
    one, other = timeline_of(*rows), timeline_of(*reversed(rows))
    assert one.grid.equals(other.grid)


def test_mean_latency_is_of_the_requests_of_the_interval(timeline_of):
    timeline = timeline_of(
        series("vllm:time_to_first_token_seconds_sum", [100.0, 101.0, 107.0]),
        series("vllm:time_to_first_token_seconds_count", [50, 60, 62]),
    )
    assert column(timeline, "ttft_s") == [None, 0.1, 3.0]
    assert column(timeline, "first_tokens") == [None, 10.0, 2.0]


def test_histogram_keeps_its_own_edges(timeline_of):
    name = "vllm:time_to_first_token_seconds_bucket"
    timeline = timeline_of(
        series(name, [1, 3, 9], edge=0.5),
        series(name, [2, 6, 14], edge=2.0),
        series(name, [2, 7, 16], edge=float("inf")),
    )
    histogram = timeline.histograms["ttft_s"]
    assert histogram.edges.tolist() == [0.5, 2.0, np.inf]
    assert histogram.over(1000.0, 1030.0).tolist() == [8.0, 12.0, 14.0]
    assert histogram.over(1015.0, 1030.0).tolist() == [6.0, 8.0, 9.0]


def test_histogram_survives_a_restart(timeline_of):
    name = "vllm:time_to_first_token_seconds_bucket"
    timeline = timeline_of(
        series(name, [10, 12, 1], edge=0.5), series(name, [20, 25, 3], edge=float("inf"))
    )
    assert timeline.histograms["ttft_s"].over(1000.0, 1030.0).tolist() == [3.0, 8.0]


def test_lifetime_average_of_v0_gives_back_the_interval_rate(timeline_of):
    # 1,000 tokens at 0.8, then 1,000 more at 0.2: the average falls to 0.5 only.
    timeline = timeline_of(
        series("vllm:gpu_prefix_cache_hit_rate", [0.8, 0.5, 0.4]),
        series("vllm:prompt_tokens_total", [1000, 2000, 3000]),
    )
    assert column(timeline, "hit_rate") == [None, pytest.approx(0.2), pytest.approx(0.2)]
    assert timeline.origins["hit_rate"].quality == "recovered from a lifetime average"


def test_lifetime_average_begins_anew_with_the_process(timeline_of):
    """After the restart 500 tokens at 0.1, then 1,500 at 0.5: an average of 0.4 over 2,000."""
    timeline = timeline_of(
        series("vllm:gpu_prefix_cache_hit_rate", [0.8, 0.8, 0.1, 0.4]),
        series("vllm:prompt_tokens_total", [1000, 9000, 500, 2000]),
    )
    assert column(timeline, "hit_rate")[1:] == pytest.approx([0.8, 0.1, 0.5])


@pytest.mark.parametrize("watched", [True, False], ids=["from-the-start", "from-some-day"])
def test_lifetime_average_of_a_log_needs_the_life_from_its_start(timeline_of, watched):
    """1,000 tokens at 0.9, then 1,000 at 0.1, and how many came before a log is not written."""
    tokens, rates = (0.0, 100.0, 100.0), (0.0, 90.0, 50.0)
    lines = [
        line
        for index, (tps, pct) in enumerate(zip(tokens, rates, strict=True))
        for line in (
            (1010.0 + 10 * index, "stats_periodic", {"prompt_tps": tps, "running": 1}),
            (1010.0 + 10 * index, "prefix_hit_rate", {"gpu_hit_rate_pct": pct}),
        )
    ]
    start = [(1005.0, "process_start", {})] if watched else []
    timeline = timeline_of(events=[*start, *lines])
    if watched:
        assert column(timeline, "hit_rate")[1:] == pytest.approx([0.9, 0.1])
    else:
        assert not timeline.has("hit_rate")


def test_lifetime_average_that_was_never_set_is_not_a_rate(timeline_of):
    timeline = timeline_of(
        series("vllm:gpu_prefix_cache_hit_rate", [-1.0, -1.0, -1.0]),
        series("vllm:prompt_tokens_total", [1000, 2000, 3000]),
    )
    assert not timeline.has("hit_rate")


def test_rates_are_per_second_of_the_time_that_passed(timeline_of):
    timeline = timeline_of(series("vllm:generation_tokens_total", [0, 150, None, 450]))
    assert column(timeline, "time") == [1000.0, 1015.0, 1045.0]
    assert column(timeline, "elapsed_s") == [None, 15.0, 30.0]
    assert column(timeline, "generation_tps") == [None, 10.0, 10.0]


def test_queries_per_prompt_token_tells_repeated_lookups(timeline_of):
    timeline = timeline_of(
        series("vllm:prefix_cache_queries_total", [0, 307]),
        series("vllm:prompt_tokens_total", [0, 100]),
    )
    assert column(timeline, "queries_per_prompt_token") == [None, 3.07]


def test_place_of_a_figure_names_series_and_time(timeline_of):
    timeline = timeline_of(series("vllm:request_success_total", [0, 3], finished_reason="abort"))
    place = timeline.place("aborted", 1015.0)
    assert place.series == 'vllm:request_success_total{finished_reason="abort"}'
    assert place.time == 1015.0
    assert timeline.place("waiting", 1015.0) is None


def test_stats_lines_lend_what_metrics_do_not_have(timeline_of):
    stats = [
        (
            1000.0 + 15.0 * n,
            "stats_periodic",
            {"running": n, "waiting": 0, "prefix_hit_rate_pct": 80.0},
        )
        for n in range(4)
    ]
    timeline = timeline_of(series("vllm:num_requests_running", [7, 7, 7, 7]), events=stats)
    assert column(timeline, "running") == [7.0] * 4  # metrics win
    assert column(timeline, "logged_hit_rate") == [0.8] * 4
    assert timeline.origins["logged_hit_rate"].clock == "log"
    assert timeline.log_grid["running"].to_list() == [0.0, 1.0, 2.0, 3.0]


def test_absent_preemptions_are_not_zero(timeline_of):
    timeline = timeline_of(series("vllm:num_requests_running", [1, 1]))
    assert not timeline.has("preemptions")


def test_preemptions_of_ended_requests_stand_in_for_the_counter(timeline_of):
    """0.30 and later; one request was preempted three times before it ended."""
    ended = series("vllm:request_num_preemptions_sum", [4.0, 4.0, 7.0])
    timeline = timeline_of(series("vllm:num_requests_running", [1.0, 1.0, 1.0]), ended)
    assert column(timeline, "preemptions") == [None, 0.0, 3.0]
    assert timeline.origins["preemptions"].quality == "counted when the request ends"


def test_the_counter_of_preemptions_wins_and_nothing_is_added_up(timeline_of):
    counted = series("vllm:num_preemptions_total", [10.0, 12.0, 15.0])
    ended = series("vllm:request_num_preemptions_sum", [4.0, 4.0, 7.0])
    assert column(timeline_of(counted, ended), "preemptions") == [None, 2.0, 3.0]


def test_a_sum_of_series_is_named_by_what_they_share(timeline_of):
    name = "vllm:request_success_total"
    timeline = timeline_of(
        series(name, [0, 5, 9], finished_reason="stop", host="a"),
        series(name, [0, 1, 1], finished_reason="error", host="a"),
        series("vllm:prompt_tokens_total", [0, 700, 900], host="a"),
    )
    assert column(timeline, "finished") == [None, 6.0, 4.0]
    assert timeline.origins["finished"].series == f'{name}{{host="a"}}'
    assert timeline.origins["requests_per_s"].series == f'{name}{{host="a"}}'
