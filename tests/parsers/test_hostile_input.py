"""Any bytes in: no exception, and every line is counted once."""

import gzip
import random
from dataclasses import astuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import parsers
from parsers.interface import Source
from tests.parsers import conftest as support
from tests.parsers import wrapping

PIECES = st.sampled_from(
    [
        b"INFO 01-15 10:23:45 [loggers.py:80] ",
        b"(APIServer pid=1) ",
        b"(EngineCore_DP3 pid=99) ",
        b"\x1b[1;36m(Worker pid=1)\x1b[0;0m ",
        b"Engine 000: Avg prompt throughput: 1.0 tokens/s, ",
        b"Running: 3 reqs, Waiting: 99999999999999999999999 reqs, ",
        b"GPU KV cache usage: nan%",
        b'INFO:     1.2.3.4:5 - "POST /v1/x HTTP/1.1" 200 OK',
        b'INFO:     - "GET /" HTTP/1.1" 503 Service Unavailable',
        b'{"log":"INFO 01-15 10:23:45 ',
        b'{"log":"x","stream":"stdout","time":"2026-05-12T08:01:39Z"}',
        b"2026-05-12T08:01:39.33Z stdout P ",
        b"2026-05-12T08:01:39.33Z stdout F ",
        b"2026-99-99T99:99:99Z ",
        b"INFO 13-45 99:99:99 [a.py:1] ",
        b"non-default args: {'a': ",
        b"args: Namespace(a='",
        b"Received request x: prompt: '",
        b"Traceback (most recent call last):",
        b"ValueError: ",
        b"[pod/a/b] ",
        b"\xff\xfe",
        b"\0\0\0",
        b"\r",
        b"\r\n",
        b"\n",
        b"((((((((((",
        b"[[[[[[[[",
        "█ █  version ".encode(),
    ]
)
NOISE = st.lists(st.one_of(PIECES, st.binary(max_size=40)), max_size=60).map(b"".join)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=NOISE)
@example(data=b"INFO:   ")
@example(data=b"\n\n\n")
@example(data=b"INFO:     \r\n")
@example(data=b"(")
@example(data=b"\x1b")
def test_any_bytes_are_counted_and_nothing_is_raised(parse, data):
    parsed = parse(data)
    coverage = parsed.coverage
    total = coverage.matched + coverage.ignored + coverage.unknown + coverage.damaged
    assert total == coverage.lines
    expected = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert coverage.lines == expected or coverage.lines < expected  # broken lines are put together
    assert coverage.bytes == sum(astuple(coverage.kind_bytes)) == len(data)
    assert parsed.events["offset"].is_sorted()


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_cost_only_their_lines(parse, seed):
    data = support.recorded("preemption-v0112")
    damaged = wrapping.shuffled_damage(data, seed)
    coverage = parse(damaged).coverage
    plain = parse(data).coverage
    assert abs(coverage.lines - plain.lines) <= 20
    assert coverage.matched >= plain.matched - 41


def test_one_invalid_byte_costs_only_its_line(parse):
    data = support.recorded("long-context-v032")
    lines = data.split(b"\n")
    at = next(number for number, line in enumerate(lines) if b"Avg prompt" in line)
    plain = parse(data)
    lines[at] = lines[at].replace(b"Avg prompt", b"\xff\xfe")[:90]
    damaged = parse(b"\n".join(lines))
    assert damaged.coverage.damaged == 1
    assert damaged.coverage.matched == plain.coverage.matched - 1
    assert damaged.damages[0].offset == len(b"\n".join(lines[:at])) + 1
    assert damaged.events.filter(damaged.events["kind"] == "stats_periodic").height == (
        plain.events.filter(plain.events["kind"] == "stats_periodic").height - 1
    )


def test_a_line_of_a_hundred_megabytes(parse):
    line = b"INFO 01-15 10:23:45 metrics.py:367] Prefix cache hit rate: GPU: 57.30%, CPU: 0.00%\n"
    data = line + b"x" * 100_000_000 + b"\n" + line
    parsed = parse(data)
    assert parsed.coverage.lines == 3
    assert parsed.coverage.damaged == 1
    assert parsed.events["kind"].to_list() == ["prefix_hit_rate"] * 2
    assert parsed.events["offset"].to_list() == [0, len(line) + 100_000_001]


def test_a_copied_and_truncated_log_begins_with_zero_bytes(parse):
    line = b"INFO 01-15 10:23:45 metrics.py:367] Prefix cache hit rate: GPU: 57.30%, CPU: 0.00%\n"
    assert parse(b"\0" * 200_000 + line).events["kind"].to_list() == ["prefix_hit_rate"]


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=3000))
def test_no_format_raises_when_asked(data):
    import io

    source = Source(0, "x", "x", None, data, lambda: io.BytesIO(data), None, len(data))
    for reader in parsers.FORMATS:
        assert reader.recognises(source) in (True, False)


def test_random_files_of_a_directory_do_not_stop_the_rest(tmp_path):
    rng = random.Random(7)
    for number in range(30):
        (tmp_path / f"{number}.bin").write_bytes(rng.randbytes(rng.randrange(4000)))
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(support.recorded("long-context-v032")))
    evidence = parsers.read([str(tmp_path)])
    assert [one.format for one in evidence.coverage].count("vllm-log") == 1


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-15 10:23:45 [logger.py:51] Request cmpl-3 details: prompt: 'my secret', x: None.",
        "INFO 01-15 10:23:45 [app.py:10] chat messages=[{'role': 'user', 'content': 'my secret'}]",
        'INFO 01-15 10:23:45 [app.py:10] asked "my secret"',
        "secret words at the end of a prompt that a runtime cut, my secret",
        '{"prompt": "my secret"}',
    ],
)
def test_samples_of_unknown_lines_hold_nothing_that_users_wrote(parse, line):
    shapes = parse(f"INFO 01-15 10:23:45 [a.py:1] Avg prompt\n{line}\n".encode()).coverage
    assert not any("secret" in shape for shape, _ in shapes.unknown_shapes)


def test_shapes_of_unknown_lines_stay_readable(parse):
    line = "WARNING 01-15 10:23:45 [app.py:725] Mixer V2 needs more room; waiting 12.5 s"
    raw = "/opt/venv/lib/python3.11/x.py:17: FutureWarning: this is deprecated, see torch.reduce_op"
    shapes = dict(parse(f"{line}\n{raw}\n".encode()).coverage.unknown_shapes)
    assert shapes == {
        "Mixer V# needs more room; waiting # s": 1,
        "/opt/venv/lib/python#/x.py:#: … torch.reduce_op": 1,
    }
