"""Requests whose prompts the log carries → what a cache without limit would have hit of each.

An engine without eviction finds every leading block that any earlier request had. Nothing of the
prompt itself is needed, only the chain of block hashes that the log reader keeps.
"""

import json
from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.diary import EngineDiary
from forensics.diary.engines import EngineKey, EngineMap
from forensics.episodes import Span
from forensics.evidence import Evidence

_BLOCK = 16  # default block size on GPUs
# Fewer logged prompts than this are no sample.
_LEAST_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class Contents:
    """What an infinite cache would have hit, request by request, in order of arrival.

    Attributes:
        times: UTC seconds, shape (n,), ascending.
        lengths: tokens (or characters) of each prompt that the hashes cover, shape (n,).
        found: how many of them earlier prompts had already brought, shape (n,).
        unit: "tokens" or "chars".
    """

    times: np.ndarray
    lengths: np.ndarray
    found: np.ndarray
    unit: str

    def attainable(self, span: Span) -> tuple[float, float, int] | None:
        """Give the attainable hit rate of a window, its standard error and its requests."""
        inside = (self.times > span.start) & (self.times <= span.end)
        count = int(inside.sum())
        lengths, found = self.lengths[inside], self.found[inside]
        total = float(lengths.sum())
        if count < _LEAST_REQUESTS or total <= 0:
            return None
        rate = float(found.sum()) / total
        # Of a ratio of sums: requests are the independent draws, not tokens.
        error = float(np.sqrt(((found - rate * lengths) ** 2).sum())) / total
        return rate, error, count


def contents_of(
    evidence: Evidence, engines: EngineMap, key: EngineKey, diary: EngineDiary
) -> Contents | None:
    """Read the request contents of one engine; None when there are none it can be held to.

    Where one server runs several ranks the log does not say which rank got a request, and what each
    could have hit depends on it.
    """
    if sum(other.server == key.server for other in engines.keys) > 1:
        return None
    sizes = [epoch.pool.block_size for epoch in diary.epochs if epoch.pool.block_size]
    rows = engines.of_rows(evidence, evidence.events, key)
    return read_contents(rows, sizes[-1] if sizes else _BLOCK)


def read_contents(events: pl.DataFrame, block_size: int = _BLOCK) -> Contents | None:
    """Play the logged prompts against a cache without limit.

    Args:
        events: rows of one engine on UTC.
        block_size: tokens per block of the engine; hits come in whole blocks of it.
    """
    rows = (
        events.filter((pl.col("kind") == "request_received") & pl.col("stamp").is_not_null())
        .sort("stamp", "source", "offset")
        .select("stamp", "fields")
    )
    seen: dict[str, set[str]] = {}
    kept: dict[str, list[tuple[float, float, float]]] = {}
    for stamp, text in rows.iter_rows():
        fields = json.loads(text)
        hashes, size = fields.get("block_hashes"), fields.get("block")
        unit, length = fields.get("unit"), fields.get("length")
        if not isinstance(hashes, list) or not isinstance(size, int) or not isinstance(length, int):
            continue
        if not isinstance(unit, str) or size <= 0 or length <= 0:
            continue
        known = seen.setdefault(unit, set())
        leading = 0
        for value in hashes:
            if value not in known:
                break
            leading += 1
        known.update(hashes)
        covered = length if len(hashes) == length // size else len(hashes) * size
        if unit == "tokens" and block_size > size:
            leading -= leading % (block_size // size)
        # The last token is always computed, so that there is something to answer from.
        found = min(leading * size, max(0, covered - 1))
        kept.setdefault(unit, []).append((stamp, float(covered), float(found)))
    if not kept:
        return None
    unit = max(kept, key=lambda name: (len(kept[name]), name))
    table = np.array(kept[unit])
    return Contents(table[:, 0], table[:, 1], table[:, 2], unit)
