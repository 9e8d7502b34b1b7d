"""Stats lines in the shapes that nearly all of them have, without the detours of the others.

Gives exactly what `stats` gives: figures are taken over as printed, which is how a number with one
decimal is written in JSON too. Anything else about a line sends it the long way.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from parsers.vllm_log.header import read_processes

_NUMBER = r"((?:0|[1-9]\d{0,8})\.\d)"
_COUNT = r"(0|[1-9]\d{0,8})"
_PLAIN = re.compile(
    r"^(?:([^\n]{0,200}?) )??INFO (\d\d-\d\d \d\d:\d\d:\d\d) \[?\w+\.py:\d+\] "
    r"(?:Engine (\d{3}): )?"
    r"Avg prompt throughput: " + _NUMBER + r" tokens/s, "
    r"Avg generation throughput: " + _NUMBER + r" tokens/s, "
    r"Running: " + _COUNT + r" reqs, "
    r"(?:Waiting: " + _COUNT + r" reqs, (\w+) KV cache usage: " + _NUMBER + r"%"
    r"(?:, Prefix cache hit rate: " + _NUMBER + r"%)?"
    r"|Swapped: " + _COUNT + r" reqs, Pending: " + _COUNT + r" reqs, "
    r"GPU KV cache usage: " + _NUMBER + r"%, CPU KV cache usage: " + _NUMBER + r"%\.?)"
    r"\r?$|^([^\n]*)$",
    re.MULTILINE | re.ASCII,
)

Who = tuple[str | None, str | None]
"""Engine and process."""


class PlainStats(NamedTuple):
    """Stats lines in columns: `fields` is compact JSON; `whos` is None for other lines."""

    whos: list[Who | None]
    fields: list[str]


@lru_cache(maxsize=4096)
def _who(prefix: str, engine: str) -> Who | None:
    process = read_processes(prefix.encode("latin-1"))
    if process is None:
        return None
    return str(int(engine)) if engine else process.engine, process.name


def read_plain(lines: Sequence[bytes | bytearray]) -> PlainStats:
    """Read lines; those that are not exactly of a usual shape have no `who`."""
    # Every byte is a character of its own here: figures are ASCII, and so is what is kept.
    groups = _PLAIN.findall(b"\n".join(lines).decode("latin-1"))
    fields = [
        f'{{"prompt_tps":{prompt},"generation_tps":{generation},"running":{running},'
        f'"waiting":{waiting},"prefix_hit_rate_pct":{rate},"device":"{device}",'
        f'"kv_usage_pct":{usage}}}'
        if rate
        else f'{{"prompt_tps":{prompt},"generation_tps":{generation},"running":{running},'
        f'"waiting":{waiting},"device":"{device}","kv_usage_pct":{usage}}}'
        if waiting
        else f'{{"prompt_tps":{prompt},"generation_tps":{generation},"running":{running},'
        f'"swapped":{swapped},"pending":{pending},"gpu_kv_usage_pct":{gpu},'
        f'"cpu_kv_usage_pct":{cpu}}}'
        for (
            _,
            _,
            _,
            prompt,
            generation,
            running,
            waiting,
            device,
            usage,
            rate,
            swapped,
            pending,
            gpu,
            cpu,
            _,
        ) in groups
    ]
    whos = [_who(line[0], line[2]) if line[1] else None for line in groups]
    return PlainStats(whos, fields)
