"""Recordings nobody made: each real one as another operator could have handed it over.

What was done to the server stays as true as it was, so the verdict may become an abstention and
never another cause: scrapes rarer, a log cut short, metrics that an older setup lacks, all times
or all token counts larger, another recording of the same server before it.
"""

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest

from forensics import analyze
from forensics.verdict import INSUFFICIENT

STAMP = re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b")
TOKENS = re.compile(r"tokens|prefix_cache_(queries|hits)")
SECONDS = re.compile(r"_seconds(_bucket|_sum)$")


@pytest.fixture(scope="module")
def recorded(corpus):
    """Read one recording: lines of its log, and its series as (labels, points)."""

    def read(name):
        folder = corpus / name
        files = [*folder.glob("metrics/query_range.json*"), *folder.glob("metrics/query_range/*")]
        answers = [json.loads(text_of(path)) for path in sorted(files)]
        series = [
            (row["metric"], [(float(at), value) for at, value in row["values"]])
            for answer in answers
            for row in answer["data"]["result"]
        ]
        (log,) = folder.glob("server.log*")
        return text_of(log).splitlines(), series

    return read


def text_of(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")


@pytest.fixture
def verdict_on(tmp_path):
    def verdict(log, series):
        paths = []
        if log:
            paths.append(tmp_path / "server.log")
            paths[-1].write_text("\n".join(log) + "\n", "utf-8")
        if series:
            result = [{"metric": labels, "values": points} for labels, points in series]
            answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
            paths.append(tmp_path / "metrics.json")
            paths[-1].write_text(json.dumps(answer), "utf-8")
        return analyze([str(path) for path in paths]).verdict

    return verdict


def every(series, step, first=0):
    """Keep every n-th scrape."""
    times = sorted({at for _, points in series for at, _ in points})[first::step]
    kept = set(times)
    rare = [(labels, [p for p in points if p[0] in kept]) for labels, points in series]
    return [(labels, points) for labels, points in rare if points]


def without(series, pattern):
    return [(labels, points) for labels, points in series if not re.search(pattern, name(labels))]


def name(labels):
    return labels["__name__"]


def slower(series, factor):
    """Stretch time: counts stay, and what is measured in seconds grows."""

    def stretched(labels, points):
        labels, longer = dict(labels), SECONDS.search(name(labels))
        if longer and labels.get("le", "+Inf") != "+Inf":
            labels["le"] = str(float(labels["le"]) * factor)
        grown = factor if longer and name(labels).endswith("_sum") else 1
        return labels, [
            (start + factor * (at - start), str(float(value) * grown)) for at, value in points
        ]

    series = without(series, "_created$")
    start = min(points[0][0] for _, points in series)
    return [stretched(labels, points) for labels, points in series]


def larger(series, factor):
    """Count every token so many times, in blocks as much larger."""

    def grown(labels, points):
        labels, counted = dict(labels), TOKENS.search(name(labels))
        for size in ("block_size", "effective_attention_block_size"):
            if labels.get(size, "").isdigit():
                labels[size] = str(int(labels[size]) * factor)
        if counted and labels.get("le", "+Inf") != "+Inf":
            labels["le"] = str(float(labels["le"]) * factor)
        amount = counted and not re.search(r"_(bucket|count|created)$", name(labels))
        times = factor if amount and "_seconds" not in name(labels) else 1
        return labels, [(at, str(float(value) * times)) for at, value in points]

    return [grown(labels, points) for labels, points in series]


def cut(log, begin, end):
    """Keep the lines of a span of the clock, as ``HH:MM:SS``."""
    kept, now = [], ""
    for line in log:
        found = STAMP.search(line[:120])
        now = found[0][6:] if found else now
        if begin <= now <= end:
            kept.append(line)
    return kept


def earlier(log, series, seconds):
    """Let a recording have happened that much earlier."""

    def moved(found):
        at = datetime.strptime("2026-" + found[0], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return (at - timedelta(seconds=seconds)).strftime("%m-%d %H:%M:%S")

    lines = [STAMP.sub(moved, line, count=1) for line in log]
    return lines, [
        (labels, [(at - seconds, value) for at, value in points]) for labels, points in series
    ]


def after_each_other(one, two):
    """Join the series of two recordings of one server."""
    both = sorted(
        [*one, *two], key=lambda item: (json.dumps(item[0], sort_keys=True), item[1][0][0])
    )
    return [
        (labels, [point for _, points in group for point in points])
        for labels, group in groupby(both, key=lambda item: item[0])
    ]


CAUSES = {
    "a-healthy-v032": {"healthy"},
    "b-preemption-cliff-v032": {"preemption-cliff"},
    "b-preemption-cliff-v0112": {"preemption-cliff"},
    "c-diversity-loss-v032": {"prefix-diversity-loss"},
    "e-restart-v032": {"cold-cache"},
    "f-queueing-v032": {"seat-limit"},
    "k-long-context-v032": {"long-context-hog", "preemption-cliff", "preemption-thrash"},
}


@pytest.mark.parametrize("way", ["both", "metrics"])
@pytest.mark.parametrize("recording", CAUSES)
def test_scrapes_as_rare_as_prometheus_takes_them(recorded, verdict_on, recording, way):
    log, series = recorded(recording)
    verdict = verdict_on(log if way == "both" else [], every(series, 7, 3))
    assert verdict.cause in {*CAUSES[recording], INSUFFICIENT}
    if recording == "b-preemption-cliff-v032" and way == "both":
        assert verdict.cause == "preemption-cliff"


@pytest.mark.parametrize("change", [lambda s: slower(s, 5), lambda s: larger(s, 4)])
@pytest.mark.parametrize("recording", CAUSES)
def test_larger_units_of_time_or_tokens_change_no_cause(recorded, verdict_on, recording, change):
    _, series = recorded(recording)
    verdict = verdict_on([], change(series))
    assert verdict.cause == verdict_on([], series).cause
    assert verdict.cause in CAUSES[recording]


@pytest.mark.parametrize(
    ("recording", "begin", "end"),
    [
        ("c-diversity-loss-v0112", "18:08:58", "18:10:13"),
        ("c-diversity-loss-v032", "17:21:51", "17:23:06"),
        ("d-lru-eviction-v032", "17:24:59", "17:26:14"),
        ("h2-concurrency-sweep-v032", "17:57:40", "17:58:55"),
    ],
)
def test_log_from_half_a_minute_before_the_fall_is_not_healthy(
    recorded, verdict_on, recording, begin, end
):
    log, _ = recorded(recording)
    assert verdict_on(cut(log, begin, end), []).cause == INSUFFICIENT


@pytest.mark.parametrize(
    "recording", ["b-preemption-cliff-v032", "b-preemption-cliff-v085-V0", "g-mixed-v032"]
)
def test_full_pool_without_a_preemption_count_is_no_eviction(recorded, verdict_on, recording):
    _, series = recorded(recording)
    verdict = verdict_on([], without(series, "preempt"))
    assert verdict.cause == INSUFFICIENT
    assert "preemptions" in verdict.missing


def test_counted_preemptions_speak_without_usage(recorded, verdict_on):
    _, series = recorded("b-preemption-cliff-v032")
    assert verdict_on([], without(series, "usage_perc")).cause == "preemption-cliff"
    _, series = recorded("h-sweep-v032/mns-128")
    assert verdict_on([], without(series, "usage_perc")).cause == "preemption-thrash"


@pytest.mark.parametrize(
    ("unseen", "missing"), [("num_requests_", "waiting"), ("usage_perc", "kv_usage")]
)
def test_standing_queue_that_cannot_be_judged_is_not_healthy(recorded, verdict_on, unseen, missing):
    _, series = recorded("h-sweep-v032/mns-008")
    verdict = verdict_on([], without(series, unseen))
    assert verdict.cause == INSUFFICIENT
    assert missing in verdict.missing
    _, calm = recorded("a-healthy-v032")
    assert verdict_on([], without(calm, unseen)).cause == "healthy"


@pytest.mark.parametrize("way", ["both", "metrics"])
def test_caching_turned_off_with_a_restart_is_no_change_of_the_traffic(recorded, verdict_on, way):
    log, series = recorded("j-prefix-caching-off-v032")
    begun = min(points[0][0] for _, points in series)
    before = recorded("a-healthy-v032")
    ended = max(points[-1][0] for _, points in before[1])
    old_log, old_series = earlier(*before, ended - begun + 150.0)
    verdict = verdict_on(
        [*old_log, *log] if way == "both" else [], after_each_other(old_series, series)
    )
    assert verdict.cause == "caching-disabled"
    assert verdict.contributing == ()
    assert verdict.onset[1] == pytest.approx(begun, abs=4.0)


@pytest.mark.parametrize("metrics", [True, False])
def test_server_that_is_still_starting_again_is_not_healthy(recorded, verdict_on, metrics):
    log, series = recorded("e-restart-v032")
    end = datetime(2026, 11, 29, 17, 29, 7, tzinfo=UTC).timestamp()
    seen = [(labels, [p for p in points if p[0] <= end]) for labels, points in series]
    verdict = verdict_on(
        cut(log, "17:28:01", "17:29:07"), [one for one in seen if one[1]] if metrics else []
    )
    assert verdict.cause == INSUFFICIENT
    assert verdict.missing == ("samples or stats lines of the process that started last",)
