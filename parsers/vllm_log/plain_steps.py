"""Added and finished requests in their usual shape, without the detours of other lines.

Gives exactly what `requests` gives; an id that needs escaping sends the line the long way.
"""

import re

from parsers.vllm_log.header import read_processes

_STEP = re.compile(
    rb"INFO \d\d-\d\d \d\d:\d\d:\d\d \[?\w+\.py:\d+\] "
    rb"(Added|Finished) request ([\w.:/@-]{1,200})\.\r?"
)
_KINDS = {b"Added": "request_added", b"Finished": "request_finished"}


def read_step(
    prefix: bytes | bytearray, record: bytes | bytearray
) -> tuple[str | None, str | None, str, str] | None:
    """Return engine, process, kind and fields of a step; None for other lines.

    Args:
        prefix: what stands before the record on its line.
        record: from the level on.
    """
    match = _STEP.fullmatch(record)
    who = read_processes(bytes(prefix)) if match is not None else None
    if match is None or who is None or not match[2].isascii():
        return None
    fields = f'{{"request_id":"{match[2].decode("ascii")}"}}'
    return who.engine, who.name, _KINDS[match[1]], fields
