"""Lines that are sorted many at a time give the rows that they give one by one."""

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsers.vllm_log.assemble import assemble
from parsers.vllm_log.chunks import ChunkReader
from parsers.vllm_log.scanner import Scanner
from parsers.vllm_log.stretches import stretch

BIG = 1 << 30  # a size at which request steps are counted

HEADS = (
    "INFO 01-15 00:00:0{0} [async_llm.py:270] ",
    "INFO 01-15 00:0{0}:59 [loggers.py:122] ",
    "INFO 01-15 00:00:0{0} metrics.py:455] ",
    "INFO 13-15 00:00:0{0} [async_llm.py:270] ",
    "INFO 01-15 00:00:6{0} [async_llm.py:270] ",
    "INFO 01-15 00:00:0{0} [async_llm.cpp:270] ",
    "INFO 01-15 00:00:0{0}  async_llm] ",
    "WARNING 01-15 00:00:0{0} [async_llm.py:270] ",
)
PREFIXES = (
    "",
    "(APIServer pid=1) ",
    "\x1b[1;36m(EngineCore_DP3 pid=277)\x1b[0;0m ",
    "(RayWorkerWrapper pid=7, ip=10.0.0.1) (APIServer pid=1) ",
    "(nobody) ",
    "vllm-1  | ",
)
MESSAGES = (
    "Received request chatcmpl-{0}: prompt: 'it\\n', params: SamplingParams(n=1), lora: None.",
    "Received request {0}",
    "Added request chatcmpl-{0}.",
    "Added request chatcmpl-{0}",
    "Added request a b {0}.",
    "Added request .",
    "Added request a. INFO 01-15 00:00:01 [async_llm.py:270] Added request b.",
    "Finished request cmpl-{0}.",
    "Aborted request cmpl-{0}.",
    "Added something else {0}.",
    "Engine 00{0}: Avg prompt throughput: 1{0}.5 tokens/s, Avg generation throughput: 0.0 "
    "tokens/s, Running: {0} reqs, Waiting: 1{0} reqs, GPU KV cache usage: 9.{0}%, Prefix cache "
    "hit rate: 41.3%",
    "Engine 000: Avg prompt throughput: 9.{0} tokens/s, Avg generation throughput: 8.0 tokens/s, "
    "Running: 5 reqs, Waiting: 4 reqs, Deferred: 2 reqs, GPU KV cache usage: 9.5%",
    "Avg prompt throughput: 1523.4 tokens/s, Avg generation throughput: 812.7 tokens/s, Running: "
    "128 reqs, Swapped: {0} reqs, Pending: 14 reqs, GPU KV cache usage: 99.2%, CPU KV cache "
    "usage: 0.0%.",
    "Avg prompt throughput: 007.{0} tokens/s, Avg generation throughput: 8.0 tokens/s",
)
CLIENTS = ("10.0.0.{0}:4321", "2001:db8:aaaa:bbbb:cccc:dddd:eeee:{0}:50000", "", 'a"{0}', "a b")
REQUESTS = (
    "POST /v1/chat/completions HTTP/1.1",
    "GET /metrics HTTP/1.0",
    "GET /health?x={0} HTTP/1.1",
    "GET /v1/responses/resp_0123456789abcdef0123456789abcdef0123456789abcdef{0} HTTP/1.1",
    'GET /v1/a"b HTTP/1.1',
    "get /v1/models HTTP/1.1",
    "POST /tokenize HTTP/2",
    "GET /metricses HTTP/1.1",
    "POST tokenize HTTP/1.1",
)
ENDINGS = ("200 OK", "503 Service Unavailable", "429 Too Many Requests", "499", "200 Fine", "20 OK")

digits = st.integers(0, 9)
messages = st.builds(
    lambda prefix, head, message, digit: (prefix + head + message).format(digit),
    st.sampled_from(PREFIXES),
    st.sampled_from(HEADS),
    st.sampled_from(MESSAGES),
    digits,
)
accesses = st.builds(
    lambda prefix, level, client, request, ending, digit: (
        f'{prefix}{level}     {client} - "{request}" {ending}'.format(digit)
    ),
    st.sampled_from(PREFIXES),
    st.sampled_from(("INFO:", "INFO:", "\x1b[32mINFO\x1b[0m:", "INFO: ")),
    st.sampled_from(CLIENTS),
    st.sampled_from(REQUESTS),
    st.sampled_from(ENDINGS),
    digits,
)
others = st.sampled_from(("", "(", "INFO:", "INFO ", "\x1b", "x\0y", "é", "ValueError: no", " x"))
logs = st.lists(
    st.tuples(st.one_of(messages, accesses, messages, others), st.integers(1, 3)), max_size=40
)


def line_by_line(content, *, keep=False):
    scanner = Scanner()
    offset = 0
    lines = content.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        size = min(len(line) + 1, len(content) - offset)
        scanner.line(line, offset, size)
        offset += size
    return rows(scanner.part, keep=keep)


def in_bulk(content, *, keep=False, **options):
    reader = ChunkReader(count_requests=not keep, **options)
    stream = io.BytesIO(content)
    while reader.fill(stream):
        pass
    return rows(reader.part, keep=keep)


def rows(part, *, keep):
    parsed = assemble([stretch(part)], 0, 0 if keep else BIG, "vllm-log")
    return parsed.events.rows(), parsed.facts.rows(), parsed.coverage


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("keep", [False, True])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=logs)
def test_bulk_gives_what_lines_give_one_by_one(log, keep, end):
    content = "".join((line + end) * times for line, times in log).encode()
    assert in_bulk(content, keep=keep) == line_by_line(content, keep=keep)


def test_more_kinds_of_line_than_are_told_apart_by_literals():
    lines = []
    for number in range(400):
        lines.append(f'INFO:     10.0.0.1:4321 - "GET /v1/{number} HTTP/1.1" 200 OK')
        lines.append(f"INFO 01-15 00:00:00 [async_llm.py:{number}] Added request a{number}.")
        lines.append(f"(EngineCore_DP{number} pid=1) INFO 01-15 00:00:00 [a.py:1] Added request b.")
    content = "\n".join(lines).encode()
    assert in_bulk(content) == line_by_line(content)
    events, _, coverage = in_bulk(content)
    assert (coverage.lines, coverage.matched) == (1200, 1200)
    assert sorted(row[-1] for row in events) == [
        '{"added":800}',
        '{"status":200,"path_class":"api","count":400}',
    ]


def test_steps_of_odd_shapes_are_counted_with_the_others_of_their_interval():
    stats = (
        "INFO 01-15 00:00:0{0} [loggers.py:80] Engine 000: Avg prompt throughput: 9.5 tokens/s, "
        "Avg generation throughput: 8.0 tokens/s, Running: 5 reqs, Waiting: 4 reqs, GPU KV cache "
        "usage: 9.5%"
    )
    lines = [
        stats.format(0),
        stats.format(1),
        "INFO 01-15 00:00:01 [logger.py:41] Received request a: prompt: 'x'.",
        "INFO 13-15 00:00:01 [logger.py:41] Received request b: prompt: 'x'.",
        stats.format(2),
    ]
    content = "\n".join(lines).encode()
    events, _, _ = in_bulk(content)
    assert [row[-1] for row in events if row[-2] == "request_counts"] == ['{"received":2}']
    assert in_bulk(content) == line_by_line(content)


@pytest.mark.parametrize("prefix", ["", "2026-05-12T08:01:39.33Z ", "vllm-1  | "])
def test_counted_lines_of_a_server_without_stats_take_no_room(prefix):
    """Without stats lines no interval ends, so all are kept until the end: as sums."""
    line = prefix + 'INFO:     10.0.0.1:4321 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    stamped = prefix + "INFO 01-15 00:00:0{0} [async_llm.py:270] Added request a.\n"
    content = "".join(line * 50 + stamped.format(number) for number in range(10)).encode()
    reader = ChunkReader(count_requests=True)
    stream = io.BytesIO(content)
    while reader.fill(stream):
        pass
    done = stretch(reader.part)
    assert int(done.tallies.lines.sum()) == 510
    assert len(done.tallies.lines) <= 20
    assert in_bulk(content) == line_by_line(content)
