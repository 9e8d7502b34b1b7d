"""Stats lines in the shapes that nearly all of them have, without the detours of the others.

Gives exactly what `stats` gives: figures are taken over as printed, which is how a number with one
decimal is written in JSON too. Anything else about a line sends it the long way.
"""

import re
from typing import NamedTuple

from parsers.vllm_log.header import yearless

_NUMBER = rb"(\d{1,9}\.\d)"
_COUNT = rb"(0|[1-9]\d{0,8})"
_PLAIN = re.compile(
    rb"INFO (\d\d-\d\d \d\d:\d\d:\d\d) \[?\w+\.py:\d+\] "
    rb"(?:Engine (\d{3}): )?"
    rb"Avg prompt throughput: " + _NUMBER + rb" tokens/s, "
    rb"Avg generation throughput: " + _NUMBER + rb" tokens/s, "
    rb"Running: " + _COUNT + rb" reqs, "
    rb"(?:Waiting: " + _COUNT + rb" reqs, (\w+) KV cache usage: " + _NUMBER + rb"%"
    rb"(?:, Prefix cache hit rate: " + _NUMBER + rb"%)?"
    rb"|Swapped: " + _COUNT + rb" reqs, Pending: " + _COUNT + rb" reqs, "
    rb"GPU KV cache usage: " + _NUMBER + rb"%, CPU KV cache usage: " + _NUMBER + rb"%\.?)"
    rb"\r?"
)


class PlainStats(NamedTuple):
    """A stats line: `fields` is compact JSON."""

    stamp: float
    engine: str | None
    fields: str


def _kept(figure: bytes) -> bytes:
    # "007.5" is no JSON number; nothing prints it, but a line may hold anything.
    return figure if figure[0] != 48 or figure[1] == 46 else b"%.1f" % float(figure)


def read_plain(buffer: bytes, head: int, end: int) -> PlainStats | None:
    """Read the record at `head`; None when it is not exactly of a usual shape."""
    match = _PLAIN.fullmatch(buffer, head, end)
    if match is None:
        return None
    (when, engine, prompt, generation, running, waiting, device, usage, rate) = match.groups()[:9]
    stamp = yearless(when.decode("ascii"))
    if stamp is None:
        return None
    if waiting is not None:
        fields = b'{"prompt_tps":%b,"generation_tps":%b,"running":%b,"waiting":%b' % (
            _kept(prompt),
            _kept(generation),
            running,
            waiting,
        )
        if rate is not None:
            fields += b',"prefix_hit_rate_pct":%b' % _kept(rate)
        fields += b',"device":"%b","kv_usage_pct":%b}' % (device, _kept(usage))
    else:
        swapped, pending, gpu, cpu = match.groups()[9:]
        fields = (
            b'{"prompt_tps":%b,"generation_tps":%b,"running":%b,"swapped":%b,"pending":%b,'
            b'"gpu_kv_usage_pct":%b,"cpu_kv_usage_pct":%b}'
            % (_kept(prompt), _kept(generation), running, swapped, pending, _kept(gpu), _kept(cpu))
        )
    rank = None if engine is None else str(int(engine))
    return PlainStats(stamp, rank, fields.decode("ascii"))
