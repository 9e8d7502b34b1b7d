"""Stats lines in the shapes that nearly all of them have, without the detours of the others.

Gives exactly what `stats` gives: figures are taken over as printed, which is how a number with one
decimal is written in JSON too. Anything else about a line sends it the long way.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from parsers.vllm_log.bulk import Bytes, Floats, stamps_at
from parsers.vllm_log.header import read_processes

_NUMBER = rb"((?:0|[1-9]\d{0,8})\.\d)"
_COUNT = rb"(0|[1-9]\d{0,8})"
_PLAIN = re.compile(
    rb"^(?:([^\n]{0,200}?) )??INFO (\d\d-\d\d \d\d:\d\d:\d\d) \[?\w+\.py:\d+\] "
    rb"(?:Engine (\d{3}): )?"
    rb"Avg prompt throughput: " + _NUMBER + rb" tokens/s, "
    rb"Avg generation throughput: " + _NUMBER + rb" tokens/s, "
    rb"Running: " + _COUNT + rb" reqs, "
    rb"(?:Waiting: " + _COUNT + rb" reqs, (\w+) KV cache usage: " + _NUMBER + rb"%"
    rb"(?:, Prefix cache hit rate: " + _NUMBER + rb"%)?"
    rb"|Swapped: " + _COUNT + rb" reqs, Pending: " + _COUNT + rb" reqs, "
    rb"GPU KV cache usage: " + _NUMBER + rb"%, CPU KV cache usage: " + _NUMBER + rb"%\.?)"
    rb"\r?$|^([^\n]*)$",
    re.MULTILINE,
)
_V1_RATE = (
    b'{"prompt_tps":%b,"generation_tps":%b,"running":%b,"waiting":%b,"prefix_hit_rate_pct":%b,'
    b'"device":"%b","kv_usage_pct":%b}'
)
_V1_NO_RATE = (
    b'{"prompt_tps":%b,"generation_tps":%b,"running":%b,"waiting":%b,"device":"%b",'
    b'"kv_usage_pct":%b}'
)
_V0 = (
    b'{"prompt_tps":%b,"generation_tps":%b,"running":%b,"swapped":%b,"pending":%b,'
    b'"gpu_kv_usage_pct":%b,"cpu_kv_usage_pct":%b}'
)


class PlainStats(NamedTuple):
    """A stats line: `fields` is compact JSON; the stamp stands beside it."""

    engine: str | None
    process: str | None
    fields: str


@lru_cache(maxsize=4096)
def _who(prefix: bytes, engine: bytes) -> tuple[str | None, str | None] | None:
    process = read_processes(prefix)
    if process is None:
        return None
    return str(int(engine)) if engine else process.engine, process.name


def read_plain(lines: Sequence[bytes | bytearray]) -> tuple[list[PlainStats | None], Floats]:
    """Read lines; None and NaN for those that are not exactly of a usual shape."""
    found: list[PlainStats | None] = []
    whens: list[bytes] = []
    for groups in _PLAIN.findall(b"\n".join(lines)):
        (prefix, when, engine, prompt, generation, running, waiting, device, usage, rate) = groups[
            :10
        ]
        who = _who(prefix, engine) if when else None
        if who is None:
            found.append(None)
            whens.append(_NO_STAMP)
            continue
        if not waiting:
            fields = _V0 % (prompt, generation, running, *groups[10:14])
        elif rate:
            fields = _V1_RATE % (prompt, generation, running, waiting, rate, device, usage)
        else:
            fields = _V1_NO_RATE % (prompt, generation, running, waiting, device, usage)
        found.append(PlainStats(*who, fields.decode("ascii")))
        whens.append(when)
    window: Bytes = np.frombuffer(b"".join(whens), np.uint8).reshape(-1, len(_NO_STAMP))
    return found, stamps_at(window)


_NO_STAMP = b"00-00 00:00:00"
