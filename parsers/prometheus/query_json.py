"""Reads answers of the Prometheus HTTP API: `query_range` matrices, `query` vectors and scalars.

Prometheus, Thanos, Mimir, Cortex and VictoriaMetrics all answer in this form. With or without the
outer ``status``/``data``, pretty-printed or not, several in one file, below a shell prompt.
"""

import re
from collections.abc import Iterator

import numpy as np
import orjson

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.json_objects import result_objects
from parsers.prometheus.labels import series_name
from parsers.prometheus.matrix_scan import Region, Scanner
from parsers.prometheus.native_histograms import classic_points, native_histogram
from parsers.prometheus.points import read_pairs
from parsers.prometheus.rows import DROPPED, Rows

_RESULT = re.compile(rb'"resultType"\s*:\s*"(?:matrix|vector|scalar|string)"')
_SERIES = re.compile(
    rb'"metric"\s*:\s*\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\}\s*,\s*'
    rb'"(?:value|values|histogram|histograms)"\s*:\s*\[\s*(?:\[|[0-9.]+\s*,|\])'
)
_ERROR = re.compile(rb'\{\s*"status"\s*:\s*"error"\s*,\s*"(?:errorType|data)"\s*:')
_REASON = re.compile(rb'"error"\s*:\s*"((?:[^"\\]|\\.){1,400})')
_SCALAR = re.compile(
    rb'"resultType"\s*:\s*"scalar"\s*,\s*"result"\s*:\s*'
    rb'\[\s*([0-9.eE+-]+)\s*,\s*"([^"\\]{1,40})"\s*\]'
)
_METRIC_KEY = re.compile(rb'([{,])\s*"metric"\s*:\s*\{')


class QueryJson:
    """Answers of `/api/v1/query_range` and `/api/v1/query`."""

    name = "prometheus-api"

    def recognises(self, source: Source) -> bool:
        """Tell by the keys that every answer has."""
        head = source.head
        return bool(_RESULT.search(head) or _SERIES.search(head) or _ERROR.search(head))

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all answers of the source."""
        rows = Rows(source, options)
        for regions in _regions(source, rows, progress):
            _add_regions(rows, regions)
        _note_other_answers(source, rows)
        return rows.finish(self.name)


def _regions(source: Source, rows: Rows, progress: Progress) -> Iterator[list[Region]]:
    """Cut the source into the points of its series, by whichever way its layout allows."""
    first = _METRIC_KEY.search(source.head)
    if first is not None and first[1] == b",":
        # Sorted or shuffled keys: the points may stand before the labels, so objects are needed.
        with source.open() as stream:
            data = stream.read()
        rows.bytes = len(data)
        yield from result_objects(data, rows.damage)
        return
    scanner = Scanner(rows.damage)
    with source.open() as stream:
        for regions in scanner.regions(stream):
            yield regions
            progress(source.path, scanner.seen, source.size or 0)
    rows.bytes = scanner.seen


def _add_regions(rows: Rows, regions: list[Region]) -> None:
    """Add the points of many series at once."""
    wanted: list[Region] = []
    wanted_keys: list[int] = []
    for region in regions:
        head = region.head
        if head.kind.startswith("histogram"):
            _add_histograms(rows, region)
            continue
        key = rows.key(series_name(head.labels), head.offset)
        if key == DROPPED:
            rows.dropped_samples += region.pairs
        else:
            wanted.append(region)
            wanted_keys.append(key)

    def damaged(index: int, offset: int) -> None:
        rows.damage(wanted[index].offset + offset, "expected [time, value] pairs")

    stamps, values, counts = read_pairs(
        [region.text for region in wanted], [region.pairs for region in wanted], damaged
    )
    if len(stamps):
        rows.add_points(np.repeat(np.array(wanted_keys, np.uint32), counts), stamps, values)


def _add_histograms(rows: Rows, region: Region) -> None:
    """Add native histograms as classic ones."""
    head = region.head
    points = []
    try:
        pairs = orjson.loads(region.text)
    except orjson.JSONDecodeError:
        rows.damage(region.offset, "native histograms that are no JSON")
        return
    for pair in [pairs] if head.kind == "histogram" else pairs:
        try:
            points.append(native_histogram(pair))
        except ValueError as error:
            rows.damage(region.offset, f"a native histogram: {error}")
    metric = head.labels.get("__name__", "")
    for suffix, edge, stamp, value in classic_points(points):
        labels = head.labels if edge is None else {**head.labels, "le": repr(edge)}
        rows.add(rows.key(series_name(labels, metric + suffix), head.offset), stamp, value)


def _note_other_answers(source: Source, rows: Rows) -> None:
    """Tell of answers that hold no series: errors, scalars, nothing."""
    if _ERROR.search(source.head):
        reason = _REASON.search(source.head)
        said = f": {reason[1].decode(errors='replace')}" if reason is not None else ""
        rows.notes.append(f"the server answered with an error instead of data{said}")
    for scalar in _SCALAR.finditer(source.head):
        try:
            stamp, value = float(scalar[1]), float(scalar[2])
        except ValueError:
            rows.damage(scalar.start(), "a scalar that is no number")
            continue
        rows.add(rows.key(series_name({}), scalar.start()), stamp, value)
    if rows.is_empty() and _RESULT.search(source.head):
        rows.notes.append("the answer holds no series: nothing matched the query in its window")
    if rows.has_nameless():
        rows.notes.append(
            "results without a metric name (of an expression such as rate(…) or sum(…)): "
            'query the plain series instead, e.g. {__name__=~"vllm:.+"}'
        )
