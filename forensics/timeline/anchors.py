"""A start seen by both sides → the offset between their clocks, where the traffic is too even.

V1 exposes when its counters were created (``_created``), within a second or two of the line that
says the engine is up (``init engine … took``): exact enough. ``process_start_time_seconds`` is
earlier than the log's first line by what imports take, up to minutes: it settles the zone, to a
quarter of an hour, and no more.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.evidence import Evidence
from forensics.timeline.matching import whole_zone

_CREATED = ("vllm:prompt_tokens_created", "vllm:generation_tokens_created")
_PROCESS = "process_start_time_seconds"
_READY = "init_engine"
_START = "process_start"
_QUARTER_HOUR = 900.0
# Several starts on both sides must agree on one offset to this many seconds.
_AGREE_S = 4.0
# The line is stamped this much before the counters are created, cut seconds included (observed
# over 28 starts: 0 to 1.5 s).
_LATER_S = 1.0
# Imports before the first line take no longer than this (observed: 7-25 s on slow machines).
_LONGEST_IMPORT_S = 420.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """An offset from starts; `exact` when it is good to a few seconds, else to the zone only."""

    offset_s: float
    exact: bool
    starts: int


def anchor(evidence: Evidence, series: pl.DataFrame, rows: pl.DataFrame) -> Anchor | None:
    """Compare the starts that metrics and log report.

    Args:
        evidence: all rows.
        series: series of the server's engines.
        rows: dated rows (``stamp`` in the log's own clock) of its log, with ``kind``.
    """
    created = _values(evidence, series, _CREATED)
    ready = _stamps(rows, _READY)
    exact = _agree(ready, created)
    if exact is not None:
        return Anchor(whole_zone(round(exact[0] + _LATER_S, 1)), True, exact[1])
    began = _values(evidence, series, (_PROCESS,))
    first = _stamps(rows, _START)
    for late in first[:1]:
        for early in began:
            offset = late - early
            quarter = np.floor(offset / _QUARTER_HOUR) * _QUARTER_HOUR
            if 0 <= offset - quarter <= _LONGEST_IMPORT_S and abs(quarter) <= 14 * 3600:
                return Anchor(float(quarter), False, 1)
    return None


def _values(evidence: Evidence, series: pl.DataFrame, metrics: tuple[str, ...]) -> list[float]:
    keys = series.filter(pl.col("metric").is_in(metrics)).select("series")
    values = evidence.samples.join(keys, on="series", how="semi")["value"].drop_nans()
    distinct = sorted(float(value) for value in values.unique() if value and value > 1e9)
    return [v for i, v in enumerate(distinct) if i == 0 or v - distinct[i - 1] > 1.0]


def _stamps(rows: pl.DataFrame, kind: str) -> list[float]:
    found = rows.filter(pl.col("kind") == kind)["stamp"].drop_nulls().drop_nans()
    return sorted(float(stamp) for stamp in found.unique())


def _agree(ready: list[float], created: list[float]) -> tuple[float, int] | None:
    """Give the offset that pairs most starts, and how many it pairs; None when none is unique."""
    offsets = np.array([late - early for late in ready for early in created])
    offsets = offsets[np.abs(offsets) <= 14 * 3600 + 60]
    if not offsets.size:
        return None
    paired = (np.abs(offsets[:, None] - offsets[None, :]) <= _AGREE_S).sum(axis=1)
    best = int(paired.max())
    chosen = offsets[paired == best]
    if float(chosen.max() - chosen.min()) > 2 * _AGREE_S:
        return None
    return float(np.median(chosen)), best
