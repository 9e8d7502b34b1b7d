"""A load generator's record of its requests (`load.jsonl`) → traffic and step time to replay.

One JSON object per line: `t_submit`, `t_end` (Unix seconds), `ttft_s`, `status`, `phase`,
`prefix_id`, `prefix_tokens`, `req_prompt_tokens`, `req_max_tokens`, `output_tokens`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from forensics.capacity.demand import fit_line
from forensics.capacity.reuse_model import StepCost
from forensics.capacity.simulated import Segment
from forensics.capacity.traffic import Recorded

_UNIQUE = 1 << 50


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded load.

    Attributes:
        records: what was sent, in the order of the file.
        steps: names of the load levels, in order of time.
        answered: for each record whether an answer came.
        cached: prompt tokens the server said it found; None where it said nothing.
        cost: of a step, fitted to inter-token latency against requests in decode.
    """

    records: tuple[Recorded, ...]
    steps: tuple[str, ...]
    answered: tuple[bool, ...]
    cached: tuple[int | None, ...]
    cost: StepCost


def read_load(
    lines: Iterable[str], *, clients_by_prefix: bool = False, common: int = 0
) -> Recording:
    """Read a `load.jsonl`.

    Args:
        lines: of the file.
        clients_by_prefix: each prefix is the history of one client.
        common: tokens at the start of every prefix that all of them share.
    """
    rows = sorted((json.loads(line) for line in lines), key=lambda row: float(row["t_submit"]))
    steps: list[str] = []
    prefixes: dict[str, int] = {}
    records = []
    for place, row in enumerate(rows):
        if row["phase"] not in steps:
            steps.append(row["phase"])
        segments: list[Segment] = []
        identity = None
        if row["prefix_id"]:
            identity = prefixes.setdefault(row["prefix_id"], len(prefixes))
            if common:
                segments.append((_UNIQUE - 1, common))
            segments.append((identity, row["prefix_tokens"]))
        rest = row["req_prompt_tokens"] - sum(length for _, length in segments)
        segments.append((_UNIQUE + place, rest))
        records.append(
            Recorded(
                submit=row["t_submit"],
                end=row["t_end"],
                segments=tuple(segments),
                output=row["req_max_tokens"],
                client=identity if clients_by_prefix else None,
                step=steps.index(row["phase"]),
            )
        )
    spans = [
        (row["t_submit"] + row["ttft_s"], row["t_end"], row["output_tokens"])
        for row in rows
        if row["status"] == "ok" and row["output_tokens"] > 5
    ]
    return Recording(
        tuple(records),
        tuple(steps),
        tuple(row["status"] == "ok" for row in rows),
        tuple(row["cached_tokens"] for row in rows),
        _cost(spans),
    )


def _cost(spans: list[tuple[float, float, int]]) -> StepCost:
    """Fit ``fixed + per_sequence x B`` to the decode times of requests that overlap."""
    batches, latencies = [], []
    for begin, end, tokens in spans:
        overlap = sum(max(0.0, min(end, e) - max(begin, b)) for b, e, _ in spans)
        batches.append(overlap / (end - begin))
        latencies.append((end - begin) / (tokens - 1))
    line = fit_line(batches, latencies)
    if line is None or line.slope <= 0 or line.intercept <= 0:
        mean = sum(latencies) / len(latencies)
        return StepCost(mean, 0.0, 0.0)
    return StepCost(line.intercept, 0.0, 0.0, line.slope)
