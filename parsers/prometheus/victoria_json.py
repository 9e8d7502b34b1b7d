"""Reads JSON lines of VictoriaMetrics' `/api/v1/export`: raw samples, one series per line.

``{"metric":{…},"values":[1,2],"timestamps":[1795973250000,1795973265000]}``, in milliseconds. A
long series comes in several lines.
"""

import re

import numpy as np
import orjson

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.labels import series_name
from parsers.prometheus.line_blocks import line_blocks
from parsers.prometheus.rows import DROPPED, Floats, Rows

_SERIES = re.compile(
    rb'"metric"\s*:\s*\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\}\s*,\s*"values"\s*:\s*\[\s*(?:null|[-"0-9])'
    rb'|"timestamps"\s*:\s*\[\s*[0-9]+\s*[,\]]'
)
_WORDS = {"Infinity": np.inf, "+Inf": np.inf, "-Infinity": -np.inf, "-Inf": -np.inf, "NaN": np.nan}


class VictoriaJson:
    """JSON lines of `/api/v1/export`."""

    name = "victoriametrics-json"

    def recognises(self, source: Source) -> bool:
        """Tell by values that are plain numbers, or by the timestamps beside them."""
        match = _SERIES.search(source.head)
        return match is not None and b'"metric"' in source.head

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all lines of the source."""
        rows = Rows(source, options)
        with source.open() as stream:
            for block, base, end in line_blocks(stream, rows.damage):
                offset = base
                rows.lines += not block
                for line in block.splitlines(keepends=True):
                    _add_line(rows, line.strip(), offset)
                    offset += len(line)
                rows.bytes = end
                progress(source.path, end, source.size or 0)
        return rows.finish(self.name)


def _add_line(rows: Rows, line: bytes, offset: int) -> None:
    """Add the series that one line holds."""
    rows.lines += 1
    if not line.startswith(b"{"):
        if line:
            rows.unknown += 1
        else:
            rows.ignored += 1
        return
    try:
        item = orjson.loads(line)
    except orjson.JSONDecodeError:
        rows.damage(offset, "expected a JSON object with metric, values and timestamps")
        return
    match item:
        case {"metric": dict() as labels, "values": list() as values, "timestamps": list() as ts}:
            pass
        case _:
            rows.damage(offset, "expected metric, values and timestamps")
            return
    stamps, numbers = _numbers(ts), _numbers(values)
    if stamps is None or numbers is None or len(ts) != len(values):
        rows.damage(offset, "values and timestamps that are not as many numbers")
        return
    rows.matched += 1
    key = rows.key(series_name({str(name): str(text) for name, text in labels.items()}), offset)
    if key == DROPPED:
        rows.dropped_samples += len(values)
        return
    rows.add_points(np.full(len(values), key, np.uint32), stamps / 1000, numbers)


def _numbers(items: list[object]) -> Floats | None:
    """Turn a JSON array into numbers: null is NaN, infinities are words; None for anything else."""
    try:
        return np.array(items, np.float64)
    except (TypeError, ValueError):
        pass  # not only numbers: look at them one by one
    numbers = []
    for item in items:
        number = _WORDS.get(item) if isinstance(item, str) else item
        if number is None:
            number = np.nan
        if not isinstance(number, int | float) or (isinstance(item, str) and item not in _WORDS):
            return None
        numbers.append(float(number))
    return np.array(numbers, np.float64)
