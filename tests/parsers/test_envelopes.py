"""A line says the same whatever it is wrapped in."""

import json

import polars as pl
import pytest

from tests.parsers import conftest as support
from tests.parsers import wrapping

LOGS = ("long-context-v032", "eviction-v085-v0", "preemption-v0112", "startup-failure-v032")
STAMPED = {
    *("docker-json", "docker-logs-t", "cri", "kubectl", "logcli", "syslog-5424", "compose-t"),
    *("fluent-bit-cri", "fluent-bit-stdout", "journald-unix", "azure", "google"),
}
RAY = {"ray", "ray-serve", "ray-repeated"}


def comparable(parsed, *, with_process=True):
    columns = ["kind", "fields", "clock", "stamp", "engine"] + ["process"] * with_process
    # The wrapper's own time may split an interval that the server's stamp does not.
    events = parsed.events.filter(~pl.col("kind").is_in(["http_access", "request_counts"]))
    return events.select(columns).rows(), parsed.facts.select("key", "value", "stamp").rows()


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("wrapper", sorted(wrapping.WRAPPERS))
def test_wrapped_lines_give_the_same_rows(parse, wrapper, log):
    data = support.recorded(log)
    lines = data.decode().replace("\r", "").split("\n")[:-1]
    plain = parse("".join(f"{line}\n" for line in lines).encode())
    wrapped = parse(wrapping.WRAPPERS[wrapper](lines))
    with_process = wrapper not in RAY
    assert comparable(wrapped, with_process=with_process) == comparable(
        plain, with_process=with_process
    )
    assert wrapped.coverage.unknown == plain.coverage.unknown
    if wrapper in STAMPED:
        assert wrapped.events["outer"].null_count() == 0
        assert wrapped.events["outer"].min() >= wrapping.START.timestamp() - 1e-3


@pytest.mark.parametrize(
    ("wrapper", "instance"),
    [
        ("compose", "vllm-1"),
        ("kubectl", "vllm-7f9c4d-x2x4z"),
        ("stern-t", "vllm-0"),
        ("logcli", "vllm-0"),
        ("logcli-jsonl", "vllm-0"),
        ("fluent-bit", "vllm-0"),
        ("elasticsearch", "vllm-0"),
        ("journald-iso", "gpu-node-1"),
        ("journald-json", "gpu-node-1"),
        ("docker-json", None),
        ("stern-letters", "vllm-deployment-abcde-xkqzw"),
        ("stern-namespace", "vllm-7f9c4d-x2x4z"),
        ("journald-full", "node-1"),
    ],
)
def test_wrappers_name_the_instance(parse, wrapper, instance):
    line = "INFO 01-15 10:23:45 metrics.py:367] Prefix cache hit rate: GPU: 57.30%, CPU: 0.00%"
    events = parse(wrapping.WRAPPERS[wrapper]([line])).events
    assert events["instance"].to_list() == [instance]


STATS = (
    "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 20.0 tokens/s, "
    "Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 57.3%, Prefix cache hit rate: 41.3%"
)
STATS_FIELDS = (
    '{"prompt_tps":10.0,"generation_tps":20.0,"running":3,"waiting":1,'
    '"prefix_hit_rate_pct":41.3,"device":"GPU","kv_usage_pct":57.3}'
)


@pytest.mark.parametrize(
    ("line", "clock", "stamp"),
    [
        (f"2026-05-12 08:01:39,500 INFO vllm.engine: {STATS}", "local", 1778572899.5),
        (f"2026-05-12 08:01:39,500 - vllm.v1.metrics - INFO - {STATS}", "local", 1778572899.5),
        (f"[2026-05-12 08:01:39] [INFO] {STATS}", "local", 1778572899.0),
        (f"INFO 2026-05-12 08:01:39,500 loggers.py:80 -- {STATS}", "local", 1778572899.5),
        (f"[INFO] 05-12 08:01:39 [loggers.py:80] Engine 000: {STATS}", "yearless", 0.0),
        (f"- **INFO** 05-12 08:01:39 [loggers.py:80] {STATS}", "yearless", 0.0),
        (f"> `INFO 05-12 08:01:39 [loggers.py:80] {STATS}`", "yearless", 0.0),
        (
            '{"asctime": "2026-05-12 08:01:39,500", "levelname": "INFO", "name": "vllm", '
            f'"processName": "APIServer", "process": 1, "message": "Engine 000: {STATS}"}}',
            "local",
            1778572899.5,
        ),
        (
            f'{{"timestamp": "2026-05-12T08:01:39.500Z", "level": "info", "msg": "{STATS}"}}',
            "utc",
            1778572899.5,
        ),
        (STATS, "none", None),
        (f"INFO:vllm.v1.metrics.loggers:Engine 000: {STATS}", "none", None),
        (f"INFO 05-12 08:01:39,123 [loggers.py:80] Engine 000: {STATS}", "yearless", 0.0),
        (
            f"2026-05-12 08:01:39.500 | INFO     | vllm.v1.metrics.loggers:log:118 - {STATS}",
            "local",
            1778572899.5,
        ),
        (f"2026-05-12 08:01:39.500\t{STATS}", "local", 1778572899.5),
        (
            f'{{"asctime": "05-12 08:01:39", "levelname": "INFO", "message": "{STATS}"}}',
            "yearless",
            0.0,
        ),
        (
            '{"severity": "INFO", "timestamp": {"seconds": 1778572899, "nanos": 500000000}, '
            f'"message": "{STATS}"}}',
            "utc",
            1778572899.5,
        ),
        (f"roughput: 5.0 tokens/s, {STATS.partition(', ')[2]}", "none", None),
    ],
)
def test_formatters_of_the_server(parse, line, clock, stamp):
    events = parse(line.encode() + b"\n").events
    assert events["kind"].to_list() == ["stats_periodic"]
    assert events["clock"].to_list() == [clock]
    if clock == "yearless":
        from parsers.vllm_log.header import yearless

        stamp = yearless("05-12 08:01:39")
    assert events["stamp"].to_list() == [stamp]
    if not line.startswith("roughput"):
        assert events["fields"].to_list() == [STATS_FIELDS]


def test_several_records_on_one_physical_line(parse):
    line = (
        f"INFO 05-12 08:01:39 [loggers.py:80] Engine 000: {STATS} "
        f"INFO 05-12 08:01:49 [loggers.py:80] Engine 001: {STATS}"
    )
    events = parse(line.encode()).events
    assert events["engine"].to_list() == ["0", "1"]
    assert events["fields"].to_list() == [STATS_FIELDS] * 2


def test_a_prompt_that_quotes_a_log_line_is_no_log_line(parse):
    line = (
        "INFO 05-12 08:01:39 [logger.py:41] Received request cmpl-1: prompt: 'see INFO 05-12 "
        f"08:01:49 [loggers.py:80] Engine 000: {STATS}', params: SamplingParams(n=1), "
        "prompt_token_ids: None, lora_request: None."
    )
    assert parse(line.encode()).events["kind"].to_list() == ["request_received"]


ACCESS = '10.0.0.9:54321 - "POST /v1/completions HTTP/1.1" 503'


@pytest.mark.parametrize(
    "line",
    [
        f"INFO:     {ACCESS} Service Unavailable",
        f"server.log:123:INFO:     {ACCESS} Service Unavailable",
        f"[gpu-node-7] INFO:     {ACCESS} Service Unavailable",
        f"2026-05-12 08:01:39,500 - uvicorn.access - INFO - {ACCESS}",
        f"INFO:uvicorn.access:{ACCESS}",
        '{"asctime": "2026-05-12 08:01:39,500", "levelname": "INFO", "name": "uvicorn.access", '
        f'"message": {json.dumps(ACCESS)}}}',
    ],
)
def test_refused_requests_count_whoever_formats_their_line(parse, line):
    events = parse(f"INFO 05-12 08:01:39 [loggers.py:80] {STATS}\n{line}\n".encode()).events
    counted = events.filter(pl.col("kind") == "http_access")
    assert counted["fields"].to_list() == ['{"status":503,"path_class":"api","count":1}']


def test_a_prefix_that_no_wrapper_is_known_for_hides_nothing(parse):
    data = support.recorded("long-context-v032")
    lines = data.decode().replace("\r", "").split("\n")[:-1]
    plain = parse("".join(f"{line}\n" for line in lines).encode())
    wrapped = parse("".join(f"[node 7/rack 3] {line}\n" for line in lines).encode())
    assert comparable(wrapped) == comparable(plain)


def test_ten_thousand_records_on_one_line(parse):
    record = f"INFO 05-12 08:01:39 [loggers.py:80] Engine 000: {STATS}"
    parsed = parse(" ".join([record] * 10_000).encode())
    assert parsed.events.height == 10_000
    assert parsed.coverage.matched == 1
