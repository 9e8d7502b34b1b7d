"""Text exposition: the time of scrapes, odd lines, and what is counted."""

import pytest

RUNNING = 'vllm:num_requests_running{engine="0",model_name="m"}'
CREATED = 'vllm:prompt_tokens_created{engine="0",model_name="m"}'


def stamps(rows, parsed, metric="vllm:num_requests_running"):
    return [(row["stamp"], row["value"]) for row in rows(parsed) if row["metric"] == metric]


@pytest.mark.parametrize(
    ("name", "stamp"),
    [
        ("metrics-20261129T172730Z.prom", 1795973250.0),
        ("metrics_2026-11-29_17-27-30.txt", 1795973250.0),
        ("scrape.1795973250.txt", 1795973250.0),
        ("scrape-1795973250500.txt", 1795973250.5),
        ("metrics-2026-11-29T18:27:30+01:00.txt", 1795973250.0),
        ("metrics.txt", 1700000000.0),
        ("vllm-0.11.2-metrics.prom", 1700000000.0),
    ],
)
def test_time_of_a_scrape_is_in_the_name_or_is_the_files(read, rows, name, stamp):
    parsed = read(f"{RUNNING} 5.0\n", name, 1700000000.0)
    assert stamps(rows, parsed) == [(stamp, 5.0)]
    assert parsed.series["clock"].to_list() == ["utc"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-11-29T17:27:30Z", "2026-11-29T17:27:35Z"),
        ("# 2026-11-29 17:27:30", "# 2026-11-29 17:27:35"),
        ("Sun Nov 29 17:27:30 UTC 2026", "Sun Nov 29 17:27:35 UTC 2026"),
        ("Sun 29 Nov 2026 05:27:30 PM UTC", "Sun 29 Nov 2026 05:27:35 PM UTC"),
        ("1795973250", "1795973255"),
        ("=== 1795973250.0 ===", "=== 1795973255.0 ==="),
        ("date: Sun, 29 Nov 2026 17:27:30 GMT", "date: Sun, 29 Nov 2026 17:27:35 GMT"),
        ("--- 2026-11-29T18:27:30.000+01:00 ---", "--- 2026-11-29T18:27:35.000+01:00 ---"),
    ],
)
def test_time_lines_between_scrapes_date_them(read, rows, first, second):
    text = f"{first}\n# TYPE x gauge\n{RUNNING} 5\nup 1\n{second}\n{RUNNING} 6\nup 1\n"
    parsed = read(text)
    assert stamps(rows, parsed) == [(1795973250.0, 5.0), (1795973255.0, 6.0)]
    assert parsed.coverage.damaged == parsed.coverage.unknown == 0
    zoned = any(word in first for word in ("Z", "UTC", "GMT", "+", "17959"))
    note = None if zoned else "scrape times without a zone were taken as UTC"
    assert parsed.coverage.note == note


def test_a_zone_that_only_has_a_name_is_not_known(read, rows):
    parsed = read(f"Sun Nov 29 17:27:30 KST 2026\n{RUNNING} 5\n")
    assert stamps(rows, parsed) == [(1795973250.0, 5.0)]
    assert parsed.coverage.note == "scrape times without a zone were taken as UTC"


def test_a_repeated_series_begins_a_scrape_and_assumed_times_are_said(read, rows):
    text = "".join(f"{RUNNING} {value}\nup 1\n" for value in (5, 6, 7))
    parsed = read(text, "metrics.txt", 1795973250.0)
    assert stamps(rows, parsed) == [
        (1795973220.0, 5.0),
        (1795973235.0, 6.0),
        (1795973250.0, 7.0),
    ]
    assert "assumed" in parsed.coverage.note


def test_an_undated_scrape_between_dated_ones_lies_between(read, rows):
    text = (
        f"1795973250\n{RUNNING} 5\nup 1\n{RUNNING} 6\nup 1\n1795973260\n{RUNNING} 7\nup 1\n"
        f"# EOF\n{RUNNING} 8\nup 1\n"
    )
    assert stamps(rows, read(text)) == [
        (1795973250.0, 5.0),
        (1795973255.0, 6.0),
        (1795973260.0, 7.0),
        (1795973275.0, 8.0),
    ]


def test_nothing_tells_the_time(read, rows):
    parsed = read(f"{RUNNING} 5\n", "stdin", None)
    assert stamps(rows, parsed) == [(None, 5.0)]
    assert parsed.series["clock"].to_list() == ["none"]
    assert parsed.coverage.note == "nothing tells when it was scraped"


def test_timestamps_in_milliseconds_and_in_seconds(read, rows):
    text = f"{RUNNING} 5 1795973250106\n{RUNNING} 6 1795973251.5\n"
    assert stamps(rows, read(text)) == [(1795973250.106, 5.0), (1795973251.5, 6.0)]


def test_federate_of_a_real_prometheus(read, rows, restart):
    parsed = read((restart / "federate.prom").read_bytes())
    assert parsed.coverage.samples == 435
    assert parsed.samples["stamp"].unique().to_list() == [1795973007.106]
    waiting = [r for r in rows(parsed) if r["metric"] == "vllm:num_requests_waiting"]
    assert [(r["instance"], r["engine"]) for r in waiting] == [("127.0.0.1:8000", "0")]


def test_created_samples_stay_series_of_their_own(read, rows):
    parsed = read(f"{CREATED} 1.7959e+09\nvllm:prompt_tokens_total 5\n")
    assert [row["metric"] for row in rows(parsed)] == [
        "vllm:prompt_tokens_created",
        "vllm:prompt_tokens_total",
    ]


def test_copies_of_a_gauge_by_process_are_kept_apart(read, rows):
    text = "".join(f'vllm:num_requests_running{{pid="{pid}"}} {pid}\n' for pid in (17, 23))
    found = [(row["labels"], row["value"]) for row in rows(read(text))]
    assert found == [({"pid": "17"}, 17.0), ({"pid": "23"}, 23.0)]


def test_lines_are_counted_by_what_they_are(read):
    text = (
        "$ curl -s localhost:8000/metrics\n"  # a prompt is unknown
        "  % Total    % Received % Xferd\n"  # and so is curl's progress
        "# HELP vllm:num_requests_running Number of requests.\n"
        "# scraped by hand\n"
        "\n"
        f"{RUNNING} 5\r\n"
        f"{RUNNING[:-4]}\n"  # cut off: damaged
        "vllm:num_requests_waiting five\n"  # damaged
        'up{a="x"  }  1\n'  # odd spaces, yet a sample
    )
    coverage = read(text).coverage
    assert (coverage.lines, coverage.matched, coverage.ignored) == (9, 2, 3)
    assert (coverage.unknown, coverage.damaged, coverage.samples) == (2, 2, 2)


def test_known_series_only_counts_what_it_drops(read):
    text = f'{RUNNING} 5\ngo_goroutines 12\ngo_info{{version="go1.19.8"}} 1\n'
    parsed = read(text, known_series_only=True)
    assert parsed.series["metric"].to_list() == ["vllm:num_requests_running"]
    assert parsed.coverage.matched == 3
    assert "2 series (2 points)" in parsed.coverage.note


def test_window_of_time(read):
    text = "".join(f"{RUNNING} {i} {1795973250000 + 1000 * i}\n" for i in range(10))
    parsed = read(text, since=1795973253.0, until=1795973255.0)
    assert parsed.samples["value"].to_list() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 4096])
def test_cutting_the_stream_anywhere_gives_the_same_rows(read, points, scrapes, monkeypatch, size):
    text = next(text for text in scrapes.values() if len(text) < 30_000)[:20_000]
    text = b"1795973250\n" + text + b"1795973260\n" + text
    whole = read(text)
    monkeypatch.setattr("parsers.prometheus.line_blocks.BLOCK_BYTES", size)
    cut = read(text)
    assert points(cut) == points(whole)
    assert cut.series["offset"].to_list() == whole.series["offset"].to_list()
    assert cut.coverage == whole.coverage


def test_a_line_without_an_end_is_damage(read, monkeypatch):
    monkeypatch.setattr("parsers.prometheus.line_blocks.BLOCK_BYTES", 64)
    monkeypatch.setattr("parsers.prometheus.line_blocks.MAX_LINE_BYTES", 256)
    text = f"{RUNNING} 5 1795973250000\n" + "x" * 2000 + f"\n{RUNNING} 6 1795973251000\n"
    parsed = read(text, format="prometheus-text")
    assert parsed.samples["value"].to_list() == [5.0, 6.0]
    assert (parsed.coverage.lines, parsed.coverage.matched, parsed.coverage.damaged) == (3, 2, 1)
    assert parsed.coverage.bytes == len(text)
