"""Wrapped lines that are read many at a time give the rows that they give one by one."""

import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsers.envelopes.shapes import Shape, Stamp, shape_of
from parsers.vllm_log.chunks import ChunkReader
from parsers.vllm_log.scanner import Scanner
from tests.parsers import conftest as support
from tests.parsers import wrapping
from tests.parsers.vllm_log import test_bulk as bulk


def dumped(line, **record):
    return json.dumps({"log": line, **record}, ensure_ascii=False)


TIMES = (
    "2026-05-12T08:0{1}:0{0}.33{0}095044Z",
    "2026-05-12T08:0{1}:0{0}.3{0}Z",
    "2026-05-12T09:0{1}:0{0}Z",
    "2026-05-12T08:0{1}:7{0}.33Z",
    "2026-05-12T08:0{1}:0{0}.331095044+02:00",
    "2026-05-12 08:0{1}:0{0}.331",
    "2026-13-12T08:0{1}:0{0}.33Z",
)
WRAPS = {
    "docker-json": lambda time, line: dumped(line + "\n", stream="stderr", time=time),
    "docker-json-ascii": lambda time, line: json.dumps(
        {"log": line + "\n", "stream": "stdout", "time": time}
    ),
    "docker-json-cut": lambda time, line: dumped(line, stream="stderr", time=time),
    "docker-json-escaped": lambda time, line: dumped(
        line + "\n", stream="stderr", time=time
    ).replace("a", r"\u0061"),
    "docker-json-broken": lambda time, line: dumped(
        line + "\n", stream="stderr", time=time
    ).replace("n", r"\q", 1),
    "docker-json-attributes": lambda time, line: dumped(
        line + "\n", stream="stderr", attrs={"tag": "v"}, time=time
    ),
    "two-lines": lambda time, line: dumped(f"{line}\n{line}\n", stream="stderr", time=time),
    "fluent-bit": lambda time, line: json.dumps({"time": time, "kubernetes": {}, "log": line}),
    "pods": lambda time, line: json.dumps(
        {"time": time, "log": line, "kubernetes": {"pod_name": f"vllm-{len(line) % 2}"}}
    ),
    "levels": lambda time, line: json.dumps({"time": time, "level": "INFO", "message": line}),
    "cri": lambda time, line: f"{time} stdout F {line}",
    "cri-stderr": lambda time, line: f"{time} stderr F {line}",
    "cri-cut": lambda time, line: f"{time} stdout P {line}",
    "kubectl": lambda time, line: f"[pod/vllm-{len(line) % 3}/server] {time} {line}",
    "kubectl-cut": lambda time, line: f"[pod/vllm-{len(line) % 3}/server] {time} stdout P {line}",
    "docker-t": lambda time, line: f"{time} {line}",
    "compose": lambda time, line: f"vllm-1  | {line}",
    "compose-t": lambda time, line: f"vllm-2  | {time} {line}",
    "logcli": lambda time, line: f'{time} {{pod="vllm-0"}} {line}',
    "journal": lambda time, line: f"May 12 {time[11:19]} gpu-1 vllm[812]: {line}",
    "journal-iso": lambda time, line: f"{time} gpu-1 vllm[812]: {line}",
    "ietf": lambda time, line: f"<134>1 {time} gpu-1 vllm 812 - - {line}",
    "ray": lambda time, line: f"(RayWorkerWrapper pid=812, ip=10.0.0.2) {line}",
    "lost-escape": lambda time, line: f"{time} [1;36m(APIServer pid=1)[0;0m {line}",
    "bold": lambda time, line: f"**{line}**",
    "cut-off": lambda time, line: dumped(line + "\n", stream="stderr", time=time)[:-9],
    "bare": lambda time, line: line,
}
COMMON = ("docker-json", "cri", "docker-t", "kubectl", "compose")

lines = st.one_of(bulk.messages, bulk.accesses, bulk.messages, bulk.others)
texts = st.tuples(lines, st.sampled_from(TIMES), st.integers(0, 9), st.integers(0, 9))


def wrapped(name, text):
    line, time, second, minute = text
    return WRAPS[name](time.format(second, minute), line)


@pytest.mark.parametrize("name", [*WRAPS, "mixed", "common"])
@pytest.mark.parametrize("keep", [False, True])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_wrapped_lines_in_bulk_give_what_they_give_one_by_one(name, keep, data):
    names = {"mixed": list(WRAPS), "common": list(COMMON)}.get(name, [name])
    log = data.draw(st.lists(st.tuples(st.sampled_from(names), texts), max_size=40))
    end = data.draw(st.sampled_from(["\n", "\n", "\r\n"]))
    chunk_bytes = data.draw(st.sampled_from([300, 4 << 20]))
    content = "".join(wrapped(*item) + end for item in log).encode()
    alone = bulk.line_by_line(content, keep=keep)
    assert bulk.in_bulk(content, keep=keep, chunk_bytes=chunk_bytes) == alone


@pytest.mark.parametrize("log", ["restart-v032", "preemption-v0112"])
@pytest.mark.parametrize("wrapper", sorted(wrapping.WRAPPERS))
def test_recordings_in_bulk_give_what_they_give_one_by_one(wrapper, log):
    recorded = support.recorded(log).decode().replace("\r", "").split("\n")[:-1]
    content = wrapping.WRAPPERS[wrapper](recorded)
    assert bulk.in_bulk(content) == bulk.line_by_line(content)
    assert bulk.in_bulk(content, chunk_bytes=5000) == bulk.line_by_line(content)


@pytest.mark.parametrize(
    "wrapper",
    [
        *("docker-json", "docker-logs-t", "compose", "compose-t", "cri", "kubectl", "stern-t"),
        *("kubectl-prefix", "stern", "journald", "journald-iso", "logcli", "logcli-jsonl", "ray"),
        *("syslog-3164", "syslog-5424", "fluent-bit-cri", "azure", "elasticsearch", "crlf"),
    ],
)
def test_usual_wrappers_are_read_in_bulk(wrapper, monkeypatch):
    record = "INFO 05-12 08:00:01 [async_llm.py:270] "
    log = [
        f"(APIServer pid=1) {record}Added request a.",
        'INFO:     10.0.0.1:4321 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        f"{record}Received request a: prompt: 'it\\n', params: x",
        "INFO 05-12 08:00:01 [loggers.py:80] " + bulk.MESSAGES[10].format(0),
    ]
    content = wrapping.WRAPPERS[wrapper](log * 50)
    read = []
    monkeypatch.setattr(Scanner, "line", lambda self, raw, *_: read.append(bytes(raw)))
    reader = ChunkReader(count_requests=True)
    stream = io.BytesIO(content)
    while reader.fill(stream):
        pass
    assert read == []
    assert reader.part.matched == 200


def test_the_shape_of_a_line_is_what_varies_in_it():
    line = b"[pod/vllm-0/server] 2026-05-12T08:01:39.33Z (APIServer pid=1) INFO 01-15 00:00:00 x"
    eight = 1778572800.0
    assert shape_of(line) == Shape(
        before=b"[pod/vllm-0/server] 2026-05-12T08:01:39.33Z ",
        behind=b"",
        quoted=False,
        stamp=Stamp(at=34, behind=False, digits=2, hour=eight, shift=0.0),
        instance="vllm-0",
        stream=None,
        cut=False,
    )
    line = rb'{"log":"INFO:     a - \"GET / HTTP/1.1\" 200 OK\n","stream":"stderr","time":"T"}'
    zoned = line.replace(b'"T"', b'"2026-05-12T10:01:39+02:00"')
    assert shape_of(zoned) == Shape(
        before=b'{"log":"',
        behind=rb'\n","stream":"stderr","time":"2026-05-12T10:01:39+02:00"}',
        quoted=True,
        stamp=Stamp(at=44, behind=True, digits=0, hour=eight + 7200, shift=7200.0),
        instance=None,
        stream="stderr",
        cut=False,
    )
    for bare in (b"", b"INFO 01-15 00:00:00 [a.py:1] (x", b"Traceback (most recent call last):"):
        assert shape_of(bare) is None


def test_what_a_runtime_cut_is_put_together_across_chunks():
    time = "2026-05-12T08:01:39.33Z"
    log = []
    for number in range(40):
        log.append(
            f"{time} stdout F INFO 05-12 08:00:01 [async_llm.py:270] Added request a{number}."
        )
        log.append(f"{time} stdout P INFO 05-12 08:00:01 [async_llm.py:270] Added requ")
        log.append(
            f"{time} stderr F INFO 05-12 08:00:02 [async_llm.py:270] Added request b{number}."
        )
        log.append(f"{time} stdout F est INFO{number}.")
    content = "\n".join(log).encode()
    for chunk_bytes in (100, 333, 4 << 20):
        for keep in (False, True):
            alone = bulk.line_by_line(content, keep=keep)
            assert bulk.in_bulk(content, keep=keep, chunk_bytes=chunk_bytes) == alone
