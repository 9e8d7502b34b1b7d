"""Wraps the lines of a log as the tools between a process and a file do."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 5, 12, 8, 1, 39, 331095, tzinfo=UTC)
Wrap = Callable[[list[str]], bytes]


def when(index: int) -> datetime:
    return START + timedelta(milliseconds=10 * index)


def nano(index: int) -> str:
    return when(index).strftime("%Y-%m-%dT%H:%M:%S.%f") + "044Z"


def each(wrap: Callable[[int, str], str]) -> Wrap:
    def wrapped(lines: list[str]) -> bytes:
        return "".join(wrap(i, line) + "\n" for i, line in enumerate(lines)).encode()

    return wrapped


def micros(index: int) -> int:
    return round(when(index).timestamp() * 1e6)


def cri_partial(lines: list[str]) -> bytes:
    out: list[str] = []
    for i, line in enumerate(lines):
        cut = min(60, len(line) // 2)
        out.append(f"{nano(i)} stdout P {line[:cut]}\n")
        out.append(f"{nano(i)} stdout F {line[cut:]}\n")
    return "".join(out).encode()


def cri_streams(lines: list[str]) -> bytes:
    """Cut each line on one stream while the other one goes on."""
    out: list[str] = []
    for i, line in enumerate(lines):
        cut = min(60, len(line) // 2)
        out.append(f"{nano(i)} stdout P {line[:cut]}\n")
        out.append(f"{nano(i)} stderr F   | between\n")
        out.append(f"{nano(i)} stdout F {line[cut:]}\n")
    return "".join(out).encode()


def docker_partial(lines: list[str]) -> bytes:
    out: list[str] = []
    for i, line in enumerate(lines):
        cut = min(80, len(line) // 2)
        out += [
            json.dumps({"log": piece, "stream": "stdout", "time": nano(i)}) + "\n"
            for piece in (line[:cut], line[cut:] + "\n")
        ]
    return "".join(out).encode()


def colours(index: int, line: str) -> str:
    if "\x1b" in line:
        return line
    return line.replace("[", "\x1b[90m[", 1).replace("INFO ", "\x1b[32mINFO\x1b[0m ", 1)


def progress(index: int, line: str) -> str:
    bar = "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.01s/it]"
    return f"\r{bar}\r{line}" if index % 7 == 3 else line


def lost_escape(index: int, line: str) -> str:
    head, mark, rest = line.partition(") ")
    return f"[1;36m{head})[0;0m {rest}" if mark and head.startswith("(") else line


WRAPPERS: dict[str, Wrap] = {
    "docker-json": each(
        lambda i, line: json.dumps({"log": line + "\n", "stream": "stdout", "time": nano(i)})
    ),
    "docker-json-partial": docker_partial,
    "docker-logs-t": each(lambda i, line: f"{nano(i)} {line}"),
    "compose": each(lambda i, line: f"vllm-1  | {line}"),
    "compose-t": each(lambda i, line: f"vllm-1  | {nano(i)} {line}"),
    "cri": each(lambda i, line: f"{nano(i)} stdout F {line}"),
    "cri-partial": cri_partial,
    "cri-streams": cri_streams,
    "kubectl": each(lambda i, line: f"[pod/vllm-7f9c4d-x2x4z/server] {nano(i)} {line}"),
    "kubectl-prefix": each(lambda i, line: f"[pod/vllm-7f9c4d-x2x4z/server] {line}"),
    "stern": each(lambda i, line: f"vllm-7f9c4d-x2x4z server {line}"),
    "stern-t": each(lambda i, line: f"vllm-0 server {nano(i)} {line}"),
    "journald": each(lambda i, line: f"May 12 08:01:39 gpu-node-1 vllm[812]: {line}"),
    "stern-letters": each(lambda i, line: f"vllm-deployment-abcde-xkqzw vllm {line}"),
    "stern-namespace": each(lambda i, line: f"prod vllm-7f9c4d-x2x4z server {line}"),
    "stern-arrow": each(lambda i, line: f"vllm-7f9c4d-x2x4z › server {line}"),
    "journald-precise": each(lambda i, line: f"May 12 08:01:39.331095 node-1 vllm[812]: {line}"),
    "journald-full": each(
        lambda i, line: f"Tue {when(i):%Y-%m-%d %H:%M:%S} UTC node-1 vllm[812]: {line}"
    ),
    "journald-unix": each(lambda i, line: f"{when(i).timestamp():.6f} node-1 vllm[812]: {line}"),
    "journald-monotonic": each(lambda i, line: f"[ 8123.{i:06}] node-1 vllm[812]: {line}"),
    "ts": each(lambda i, line: f"May 12 08:01:39 {line}" if line[:1] in "(DIWEC" else line),
    "journald-iso": each(
        lambda i, line: f"{when(i):%Y-%m-%dT%H:%M:%S}+0000 gpu-node-1 vllm[812]: {line}"
    ),
    "journald-json": each(
        lambda i, line: json.dumps(
            {"__REALTIME_TIMESTAMP": str(micros(i)), "_HOSTNAME": "gpu-node-1", "MESSAGE": line}
        )
    ),
    "journald-bytes": each(
        lambda i, line: json.dumps(
            {"__REALTIME_TIMESTAMP": str(micros(i)), "MESSAGE": list(line.encode())}
        )
    ),
    "logcli": each(lambda i, line: f'{nano(i)} {{container="server", pod="vllm-0"}} {line}'),
    "logcli-bare": each(lambda i, line: f"{nano(i)} {{}} {line}"),
    "logcli-jsonl": each(
        lambda i, line: json.dumps(
            {"labels": {"pod": "vllm-0"}, "line": line, "timestamp": nano(i)}
        )
    ),
    "grafana-txt": each(lambda i, line: f"{when(i):%Y-%m-%dT%H:%M:%S}.331Z\t{line}"),
    "syslog-3164": each(lambda i, line: f"<134>May 12 08:01:39 gpu-node-1 vllm[812]: {line}"),
    "syslog-5424": each(lambda i, line: f"<134>1 {nano(i)} gpu-node-1 vllm 812 - - {line}"),
    "fluent-bit": each(
        lambda i, line: json.dumps(
            {"date": micros(i) / 1e6, "log": line, "kubernetes": {"pod_name": "vllm-0"}}
        )
    ),
    "fluent-bit-cri": each(
        lambda i, line: json.dumps(
            {"time": nano(i), "stream": "stdout", "_p": "F", "log": line, "kubernetes": {}}
        )
    ),
    "fluent-bit-no-tag": each(
        lambda i, line: json.dumps({"date": micros(i) / 1e6, "stream": "stdout", "log": line})
    ),
    "fluent-bit-stdout": each(
        lambda i, line: (
            f"[0] kube.vllm: [[{micros(i) / 1e6:.6f}, {{}}], {json.dumps({'log': line})}]"
        )
    ),
    "fluentd-file": each(
        lambda i, line: f"{nano(i)}\tkube.vllm\t{json.dumps({'log': line, 'stream': 'stdout'})}"
    ),
    "azure": each(
        lambda i, line: json.dumps({"TimeGenerated": nano(i), "PodName": "v", "LogMessage": line})
    ),
    "google": each(
        lambda i, line: json.dumps({"timestamp": nano(i), "jsonPayload": {"message": line}})
    ),
    "elasticsearch": each(
        lambda i, line: json.dumps(
            {
                "_index": "logs",
                "_source": {
                    "@timestamp": nano(i),
                    "message": line,
                    "kubernetes": {"pod": {"name": "vllm-0"}},
                },
            }
        )
    ),
    "ray": each(lambda i, line: f"(RayWorkerWrapper pid=812, ip=10.0.0.2) {line}"),
    "ray-serve": each(
        lambda i, line: (
            f"(ServeReplica:app:VLLM(model=(x)) pid=81, ip=10.0.0.2) "
            f"(RayWorkerWrapper pid=812, ip=10.0.0.2) {line}"
        )
    ),
    "ray-repeated": each(
        lambda i, line: f"(RayWorkerWrapper pid=9, ip=10.0.0.2) {line} [repeated 2x across cluster]"
    ),
    "colours": each(colours),
    "lost-escape": each(lost_escape),
    "no-break-spaces": each(lambda i, line: line.replace(" ", "\u00a0")),
    "crlf": each(lambda i, line: line + "\r"),
    "bom": lambda lines: b"\xef\xbb\xbf" + "".join(f"{line}\n" for line in lines).encode(),
    "progress": each(progress),
    "no-final-newline": lambda lines: "\n".join(lines).encode(),
}


def shuffled_damage(data: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 20)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)
