"""Turns native histograms of the HTTP API into classic ones: cumulative buckets, sum and count.

A native histogram lists only the buckets that hold something, each with its own two borders, and
may change its resolution over time. A bucket series needs one value per edge and stamp: what lies
at or below that edge. Where a listed bucket straddles an edge that value is not known and left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

INFINITY = float("inf")

_DUMPED = re.compile(
    r"(?P<name>\{.*\}) \{count:(?P<count>[^,{}]+), sum:(?P<sum>[^,{}]+)(?P<buckets>.*)\} "
    r"(?P<stamp>-?\d+)"
)
_FLOAT = r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|Inf)"
_DUMPED_BUCKET = re.compile(rf"[\[(]({_FLOAT}),({_FLOAT})[\])]:({_FLOAT})")


@dataclass(frozen=True, slots=True)
class NativeHistogram:
    """One point of a native histogram.

    Attributes:
        stamp: UTC seconds.
        count: observations.
        sum: of the observed values.
        buckets: (left border, right border, observations in between), not cumulative.
    """

    stamp: float
    count: float
    sum: float
    buckets: tuple[tuple[float, float, float], ...]


Point = tuple[str, float | None, float, float]
"""(suffix of the sample name, edge of a bucket, stamp, value)"""


def native_histogram(pair: object) -> NativeHistogram:
    """Read ``[stamp, {"count": "…", "sum": "…", "buckets": [[rule, left, right, count], …]}]``.

    Raises:
        ValueError: when it is anything else.
    """
    match pair:
        case [float() | int() as stamp, {"count": count, "sum": total, **rest}]:
            buckets = rest.get("buckets", [])
            if not isinstance(buckets, list):
                raise ValueError("buckets are no list")
            return NativeHistogram(
                float(stamp), _number(count), _number(total), tuple(map(_bucket, buckets))
            )
    raise ValueError("not a stamp and a histogram")


def dumped_histogram(line: str) -> tuple[str, NativeHistogram] | None:
    """Read a line of `promtool tsdb dump` that holds a native histogram.

    Returns:
        The text of the name and labels, and the histogram; None when the line is anything else.

    Example:
        >>> line = '{__name__="t"} {count:3, sum:2.5, (0,0.5]:1, (0.5,2]:2} 5000'
        >>> dumped_histogram(line)[1].buckets
        ((0.0, 0.5, 1.0), (0.5, 2.0, 2.0))
    """
    match = _DUMPED.fullmatch(line.strip())
    if match is None:
        return None
    buckets = tuple(
        (float(left), float(right), float(count))
        for left, right, count in _DUMPED_BUCKET.findall(match["buckets"])
    )
    try:
        count, total = float(match["count"]), float(match["sum"])
    except ValueError:
        return None
    return match["name"], NativeHistogram(int(match["stamp"]) / 1000, count, total, buckets)


def classic_points(points: Sequence[NativeHistogram]) -> Iterator[Point]:
    """Yield the points of the classic histogram that says the same, series by series.

    Example:
        >>> one = NativeHistogram(5.0, 3.0, 2.5, ((0.0, 0.5, 1.0), (0.5, 2.0, 2.0)))
        >>> [(edge, value) for suffix, edge, _, value in classic_points([one]) if edge]
        [(0.5, 1.0), (2.0, 3.0), (inf, 3.0)]
    """
    edges = sorted({right for point in points for _, right, _ in point.buckets} - {INFINITY})
    for edge in edges:
        for point in points:
            if any(left < edge < right for left, right, _ in point.buckets):
                continue
            below = sum(count for _, right, count in point.buckets if right <= edge)
            yield "_bucket", edge, point.stamp, below
    for point in points:
        yield "_bucket", INFINITY, point.stamp, point.count
    for point in points:
        yield "_sum", None, point.stamp, point.sum
    for point in points:
        yield "_count", None, point.stamp, point.count


def _number(value: object) -> float:
    """Read a number that the API may have put in quotes."""
    if isinstance(value, str | int | float):
        return float(value)
    raise ValueError("not a number")


def _bucket(bucket: object) -> tuple[float, float, float]:
    """Read ``[rule, left, right, count]``; the rule says which border belongs to the bucket."""
    match bucket:
        case [_, left, right, count]:
            return _number(left), _number(right), _number(count)
    raise ValueError("not a bucket")
