"""Names series from the text of their names and labels, quickly where the text is plain.

A dump of a fleet has hundreds of thousands of distinct series and only some hundred shapes: the
same metric with the same labels in the same order, other values. What a shape means is worked out
once; then a series costs a split at its quotes. Anything unusual (escapes, odd spaces, quoted
names) takes the general way, and both ways give the same.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from parsers.prometheus.exposition_line import read_name
from parsers.prometheus.labels import (
    EDGE_LABELS,
    ENGINE_LABELS,
    INSTANCE_LABELS,
    REPLICA_LABEL,
    SeriesName,
    rank_of,
    series_name,
)

_FIRST = re.compile(r"(?P<metric>[a-zA-Z_:][a-zA-Z0-9_:]*)?\{(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)=")
_NEXT = re.compile(r", ?(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)=")

Values = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the values of one shape mean, by their places between the quotes.

    Attributes:
        metric: the name; None when it is a value.
        name / edge: place of the name and of the bucket edge.
        instances / engines: places that may name them, the most telling first.
        template: the label column with ``%s`` for each value.
        rest: picks the values that the template takes; None when it takes none.
    """

    metric: str | None
    name: int | None
    edge: int | None
    instances: tuple[int, ...]
    engines: tuple[int, ...]
    template: str
    rest: Callable[[list[str]], str | Values] | None


class NameShapes:
    """Names series; keeps what it learned about their shapes."""

    def __init__(self) -> None:
        self._shapes: dict[Values, _Shape | None] = {}

    def named(self, text: str) -> SeriesName | None:
        """Name the series that a text like ``up{job="vllm"}`` stands for; None when it is none."""
        if "\\" not in text and text.isprintable():
            parts = text.split('"')
            key = tuple(parts[::2])
            try:
                shape = self._shapes[key]
            except KeyError:
                shape = self._shapes[key] = _shape_of(key)
            if shape is not None:
                name = _fill(shape, parts[1::2])
                if name is not None:
                    return name
        read = read_name(text)
        return series_name(read[0]) if read is not None and read[1] == len(text) else None


def _shape_of(parts: Values) -> _Shape | None:
    """Work a shape out from the text between the values; None when it is unusual."""
    first = _FIRST.fullmatch(parts[0])
    if first is None or parts[-1] != "}":
        return None
    following = [_NEXT.fullmatch(part) for part in parts[1:-1]]
    labels = [first["label"], *(match["label"] for match in following if match is not None)]
    if len(labels) != len(parts) - 1 or len(set(labels)) != len(labels) or REPLICA_LABEL in labels:
        return None
    places = {label: place for place, label in enumerate(labels)}
    edges = [places[label] for label in EDGE_LABELS if label in places]
    if ("__name__" in places) == (first["metric"] is not None) or len(edges) > 1:
        return None
    taken = {"__name__", "instance", *ENGINE_LABELS, *(EDGE_LABELS if edges else ())}
    rest = sorted(label for label in labels if label not in taken)
    return _Shape(
        metric=first["metric"],
        name=places.get("__name__"),
        edge=edges[0] if edges else None,
        instances=tuple(places[label] for label in INSTANCE_LABELS if label in places),
        engines=tuple(places[label] for label in ENGINE_LABELS if label in places),
        template="{" + ",".join(f'"{label}":"%s"' for label in rest) + "}",
        rest=itemgetter(*(places[label] for label in rest)) if rest else None,
    )


def _fill(shape: _Shape, values: list[str]) -> SeriesName | None:
    """Put the values of a series into its shape; None when one of them is unusual."""
    edge = None
    if shape.edge is not None:
        try:
            edge = float(values[shape.edge])
        except ValueError:
            return None
        if edge != edge:
            return None
    instance = engine = None
    for place in shape.instances:
        if values[place]:
            instance = values[place]
            break
    for place in shape.engines:
        if values[place]:
            engine = rank_of(values[place])
            break
    metric = shape.metric if shape.name is None else values[shape.name]
    labels = shape.template % shape.rest(values) if shape.rest is not None else "{}"
    return SeriesName(metric or "", instance, engine, labels, edge)
