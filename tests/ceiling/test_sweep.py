"""Breaks and peaks of published tables, and of result files as benchmark tools write them."""

import json

import pytest

from forensics.catalog.messages import render
from forensics.ceiling.bench_results import read_results
from forensics.ceiling.records import SweepRow
from forensics.ceiling.sweep import from_files
from forensics.ceiling.sweep_compare import Targets, compare

PUBLISHED = [
    SweepRow(8, 0.65, 0.130, 0.210, 310),
    SweepRow(32, 0.60, 0.200, 1.850, 840),
    SweepRow(64, 0.31, 0.490, 6.400, 1150),
    SweepRow(128, 0.18, 1.280, 16.200, 1300),
]


def notes(sweep):
    return {note.key.removeprefix("ceiling.sweep."): note for note in sweep.notes}


def test_the_published_table() -> None:
    sweep = compare(PUBLISHED, "max_num_seqs", Targets(ttft_s=2.0))
    assert sweep.hit_break == (32, 64)
    assert sweep.throughput_peak == (128, 128)
    assert sweep.largest_within_slo == 32
    trade = notes(sweep)["trade"].values
    assert (trade["below"], trade["above"]) == (32, 64)
    assert trade["throughput"] == pytest.approx(0.37, abs=0.005)
    assert trade["ttft"] == pytest.approx(1.45, abs=0.005)
    assert "differ" in notes(sweep)
    for note in sweep.notes:
        assert render(note, "en")
        assert render(note, "ko")


def test_a_median_target_allows_more() -> None:
    assert compare(PUBLISHED, "x", Targets(0.5, 50)).largest_within_slo == 64
    assert compare(PUBLISHED, "x", Targets(0.1)).largest_within_slo is None
    assert compare(PUBLISHED, "x").largest_within_slo is None


def test_a_plateau_that_is_not_bound_by_the_pool() -> None:
    # Published: 8 to 456 clients, 1,680 tok/s rising to a plateau of 6,600-7,300, pool 31 % used,
    # reuse at least 66 %; a connection limit of 136 kept 5,900 tok/s.
    levels = [(8, 1680), (32, 3400), (64, 4700), (136, 5900), (200, 6650), (256, 6900), (456, 7300)]
    rows = [SweepRow(n, 0.66, throughput_tok_s=rate, kv_usage=0.31) for n, rate in levels]
    sweep = compare(rows, "clients")
    assert sweep.hit_break is None
    plateau = notes(sweep)["plateau"].values
    assert (plateau["low"], plateau["high"], plateau["usage"]) == (200, 456, 0.31)
    kept = notes(sweep)["limit_costs"].values
    assert (kept["setting"], kept["rate"]) == (136, 5900)
    assert 0.80 < kept["share"] < 0.90
    text = render(notes(sweep)["plateau"])
    assert "not bound by the KV pool" in text
    assert "bound the number of admitted requests" in text


def test_a_flat_hit_rate_has_no_break() -> None:
    # The recorded batch sweep: .657 to .624, throughput rising to the last setting.
    measured = [
        (2, 0.657, 615), (4, 0.648, 1016), (8, 0.636, 1213), (16, 0.633, 1540),
        (32, 0.624, 2200), (64, 0.638, 3130), (128, 0.633, 3258),
    ]  # fmt: skip
    sweep = compare([SweepRow(n, h, throughput_tok_s=t) for n, h, t in measured], "max_num_seqs")
    assert sweep.hit_break is None
    assert "no_hit_break" in notes(sweep)
    assert sweep.throughput_peak == (128, 128)


def test_the_recorded_users_break_between_32_and_64() -> None:
    rates = {2: 0.746, 4: 0.846, 8: 0.852, 16: 0.858, 32: 0.856, 64: 0.529, 128: 0.445}
    speed = {2: 43, 4: 75, 8: 167, 16: 316, 32: 588, 64: 977, 128: 976}
    rows = [SweepRow(n, rates[n], throughput_tok_s=speed[n], kv_usage=0.9) for n in rates]
    sweep = compare(rows, "users")
    assert sweep.hit_break == (32, 64)
    assert sweep.throughput_peak == (64, 128)
    assert "plateau" not in notes(sweep)


def test_repeated_settings_are_averaged_and_order_does_not_matter() -> None:
    doubled = [*reversed(PUBLISHED), SweepRow(8, 0.67, 0.150, 0.230, 330)]
    sweep = compare(doubled, "x")
    assert sweep.rows[0] == SweepRow(8, 0.66, pytest.approx(0.14), pytest.approx(0.22), 320)
    assert compare(PUBLISHED[:1], "x") is None
    assert compare([], "x") is None


def test_vllm_bench_serve_results(tmp_path) -> None:
    for row in PUBLISHED:
        result = {
            "date": "20261129-120000",
            "backend": "vllm",
            "num_prompts": 500,
            "request_rate": "inf",
            "max_concurrency": int(row.setting),
            "duration": 60.0,
            "completed": 500,
            "output_throughput": row.throughput_tok_s,
            "mean_ttft_ms": row.ttft_p50_s * 1000,
            "median_ttft_ms": row.ttft_p50_s * 1000,
            "p99_ttft_ms": row.ttft_p99_s * 1000,
        }
        (tmp_path / f"run-{row.setting}.json").write_text(json.dumps(result))
    sweep = from_files(sorted(tmp_path.iterdir()), Targets(2.0))
    assert sweep.setting_name == "max_concurrency"
    assert [row.setting for row in sweep.rows] == [8, 32, 64, 128]
    assert sweep.throughput_peak == (128, 128)
    assert sweep.largest_within_slo == 32
    assert sweep.hit_break is None
    assert sweep.rows[0].requests == 500


def test_appended_results_and_sweep_summaries(tmp_path) -> None:
    lines = [
        json.dumps({"max_concurrency": n, "output_throughput": t, "median_ttft_ms": 100.0})
        for n, t in ((1, 50.0), (2, 95.0))
    ]
    appended = tmp_path / "results.json"
    appended.write_text("\n".join(lines))
    assert [row.throughput_tok_s for row in from_files([appended]).rows] == [50.0, 95.0]
    summary = tmp_path / "summary.csv"
    summary.write_text(
        "max_concurrency,run_number,completed,output_throughput,median_ttft_ms,p99_ttft_ms\n"
        "8,0,100,310.0,130.0,210.0\n32,0,100,840.0,200.0,1850.0\n"
    )
    sweep = from_files([summary])
    assert sweep.rows[1] == SweepRow(32, None, 0.2, 1.85, 840.0, None, None, 100)
    listed = tmp_path / "summary.json"
    listed.write_text("[" + ",".join(lines) + "]")
    assert len(from_files([listed]).rows) == 2


def test_guidellm_results(tmp_path) -> None:
    def benchmark(streams, rate, middle, tail):
        return {
            "config": {"strategy": {"type_": "concurrent", "streams": streams}},
            "metrics": {
                "output_tokens_per_second": {"successful": {"mean": rate}},
                "time_to_first_token_ms": {
                    "successful": {"median": middle, "percentiles": {"p50": middle, "p99": tail}}
                },
                "request_totals": {"successful": 40},
            },
        }

    path = tmp_path / "benchmarks.json"
    path.write_text(
        json.dumps({"benchmarks": [benchmark(8, 310, 130, 210), benchmark(32, 840, 200, 1850)]})
    )
    sweep = from_files([path])
    assert sweep.rows[0] == SweepRow(8, None, 0.13, 0.21, 310, None, None, 40)


def test_aiperf_results(tmp_path) -> None:
    for streams, rate in ((8, 310.0), (32, 840.0)):
        folder = tmp_path / f"run{streams}"
        folder.mkdir()
        (folder / "profile_export_aiperf.json").write_text(
            json.dumps(
                {
                    "time_to_first_token": {"unit": "ms", "avg": 140, "p50": 130, "p99": 210},
                    "output_token_throughput": {"unit": "tokens/sec", "avg": rate},
                    "request_count": {"unit": "requests", "avg": 64},
                    "input_config": {"loadgen": {"concurrency": streams}},
                }
            )
        )
    sweep = from_files(sorted(tmp_path.rglob("*.json")))
    assert [(row.setting, row.throughput_tok_s) for row in sweep.rows] == [(8, 310), (32, 840)]
    assert sweep.rows[0].ttft_p99_s == 0.21


def test_metric_tables_take_the_setting_from_the_name(tmp_path) -> None:
    for streams, rate in ((8, "310.00"), (32, "1,840.00")):
        (tmp_path / f"concurrency-{streams}.csv").write_text(
            "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\n"
            'Time To First Token (ms),"1,146.31",249.48,"3,485.23","3,457.97",1,1,1,640.07,286.52\n'
            f'\nMetric,Value\nOutput Token Throughput (per sec),"{rate}"\n'
        )
    sweep = from_files(sorted(tmp_path.iterdir()))
    assert sweep.rows[1] == SweepRow(32, None, 0.64007, 3.45797, 1840.0)


def test_plain_tables_and_headers_over_several_rows(tmp_path) -> None:
    plain = tmp_path / "table.csv"
    plain.write_text(
        "batch,hit rate (%),TTFT p50 (ms),TTFT p99 (ms),tok/s\n"
        + "".join(
            f"{r.setting},{r.hit_rate * 100:g},{r.ttft_p50_s * 1000:g},"
            f"{r.ttft_p99_s * 1000:g},{r.throughput_tok_s}\n"
            for r in PUBLISHED
        )
    )
    sweep = from_files([plain], Targets(2.0))
    assert sweep.hit_break == (32, 64)
    assert sweep.largest_within_slo == 32
    stacked = tmp_path / "stacked.csv"
    stacked.write_text(
        "Strategy,Request Concurrency,Time to First Token (ms),Time to First Token (ms),"
        "Output Tokens per Second\n"
        "Name,Mean,Median,P99,Mean\n"
        "concurrent@8,8,130,210,310\nconcurrent@32,32,200,1850,840\n"
    )
    assert from_files([stacked]).rows[1] == SweepRow(32, None, 0.2, 1.85, 840)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "table.csv",
            "Batch size;Hit rate (%);KV usage (%);TTFT p50 (ms);TTFT p99 (ms);tok/s\n"
            "8;65;30;130;210;310\n32;60;31;200;1,850;840\n64;31;31;490;6,400;1,150\n"
            "128;1;31;1,280;16,200;1,300\n",
        ),
        (
            "table.json",
            json.dumps(
                [
                    {"batch": b, "hit_rate": h, "kv_usage": u, "ttft_p50": m, "ttft_p99": t,
                     "throughput": r}
                    for b, h, u, m, t, r in (
                        (8, 65, 0.30, 0.13, 0.21, 310), (32, 60, 0.31, 0.2, 1.85, 840),
                        (64, 31, 0.31, 0.49, 6.4, 1150), (128, 1, 0.31, 1.28, 16.2, 1300),
                    )
                ]
            ),
        ),
        (
            "serve.jsonl",
            "\n".join(
                json.dumps(
                    {"max_concurrency": b, "hit_rate": h, "kv_cache_usage": u, "median_ttft_ms": m,
                     "p99_ttft_ms": t, "output_throughput": r}
                )
                for b, h, u, m, t, r in (
                    (8, "65%", "30%", 130, 210, 310), (32, "60%", "31%", 200, 1850, 840),
                    (64, "31%", "31%", 490, 6400, 1150), (128, "1%", "31%", 1280, 16200, 1300),
                )
            ),
        ),
    ],
)  # fmt: skip
def test_one_table_in_other_spellings(tmp_path, name, content) -> None:
    path = tmp_path / name
    path.write_text(content)
    sweep = from_files([path], Targets(2.0))
    assert [row.setting for row in sweep.rows] == [8, 32, 64, 128]
    assert [row.hit_rate for row in sweep.rows] == pytest.approx([0.65, 0.60, 0.31, 0.01])
    assert [row.kv_usage for row in sweep.rows] == pytest.approx([0.30, 0.31, 0.31, 0.31])
    assert [row.ttft_p99_s for row in sweep.rows] == pytest.approx([0.21, 1.85, 6.4, 16.2])
    assert sweep.rows[-1].throughput_tok_s == 1300
    assert (sweep.hit_break, sweep.largest_within_slo) == ((32, 64), 32)


def test_a_decimal_comma_is_no_number(tmp_path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("batch;throughput;hit rate\n8;1,5;60\n16;2,5;70\n")
    assert [row.throughput_tok_s for _, row in read_results(path)] == [None, None]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "{not json", "a,b\n1,2\n", "[1, 2]", '{"benchmarks": [3]}', "\x00"]
)
def test_other_files_give_no_rows(tmp_path, content) -> None:
    path = tmp_path / "other"
    path.write_text(content)
    assert from_files([path]) is None
