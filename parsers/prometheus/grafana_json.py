"""Reads Grafana's data frames as JSON: panel data, data frames, and query answers.

A frame is a table of fields. Prometheus gives one frame per series, labels on the value field; a
joined or table-formatted panel has several value fields, or labels in fields of their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.cells import labels_of
from parsers.prometheus.json_objects import documents
from parsers.prometheus.labels import series_name
from parsers.prometheus.rows import Rows

_FRAMES = re.compile(rb'"fields"\s*:\s*\[\s*\{')
_HINTS = re.compile(rb'"type"\s*:\s*"time"|"typeInfo"|"refId"|"schema"')
_EXPRESSION = re.compile(r"Expr: ([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^{}]*\})?\s*(?:\n|\Z)")
_MAX_LEVELS = 12
_UNNAMED = ("value", "values", "")

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a frame: its title, kind (``time``, ``number``, ``string``), labels, cells."""

    name: str
    kind: str
    labels: dict[str, str]
    cells: list[object]


class GrafanaJson:
    """Data frames of Grafana."""

    name = "grafana-json"

    def recognises(self, source: Source) -> bool:
        """Tell by frames: lists of fields of which one is a time."""
        return bool(_FRAMES.search(source.head) and _HINTS.search(source.head))

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all frames of the source."""
        rows = Rows(source, options)
        with source.open() as stream:
            data = stream.read()
        rows.bytes = len(data)
        for document, offset in documents(data, rows.damage):
            for fields in _frames(document, 0):
                if not _add_frame(rows, fields, offset):
                    rows.damage(offset, "expected a data frame with a time and numbers")
        progress(source.path, rows.bytes, source.size or 0)
        return rows.finish(self.name)


def _frames(node: object, level: int) -> Iterator[list[Field]]:
    """Walk down to the frames of a document."""
    if level > _MAX_LEVELS:
        return
    if isinstance(node, list):
        for item in node:
            yield from _frames(item, level + 1)
    elif isinstance(node, dict):
        schema, data = node.get("schema"), node.get("data")
        if isinstance(schema, dict) and isinstance(data, dict) and "values" in data:
            yield _fields(schema, data)
        elif isinstance(node.get("fields"), list) and any(
            isinstance(one, dict) and "values" in one for one in node["fields"]
        ):
            yield _fields(node, None)
        else:
            for item in node.values():
                yield from _frames(item, level + 1)


def _fields(schema: Object, data: Object | None) -> list[Field]:
    """Read the fields of one frame."""
    found: list[Field] = []
    described = schema.get("fields")
    columns = data.get("values") if data is not None else None
    entities = data.get("entities") if data is not None else None
    for index, field in enumerate(described if isinstance(described, list) else []):
        if not isinstance(field, dict):
            continue
        cells = _item(columns, index) if data is not None else field.get("values")
        if isinstance(cells, dict):  # older versions wrap the values
            cells = cells.get("buffer")
        special = _item(entities, index) if data is not None else field.get("entities")
        labels = field.get("labels")
        names = {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}
        name = str(field.get("name", ""))
        if "__name__" not in names:
            names = {**_named(schema, field, name), **names}
        found.append(Field(name, str(field.get("type", "")), names, _with_words(cells, special)))
    return found


def _item(items: object, index: int) -> object:
    """Return an item of a list, or None."""
    return items[index] if isinstance(items, list) and index < len(items) else None


def _with_words(cells: object, special: object) -> list[object]:
    """Put back the numbers that JSON cannot write; they are listed beside the values."""
    values = list(cells) if isinstance(cells, list) else []
    if isinstance(special, dict):
        for word, value in (("NaN", "nan"), ("Inf", "inf"), ("NegInf", "-inf")):
            places = special.get(word)
            for place in places if isinstance(places, list) else []:
                if isinstance(place, int) and 0 <= place < len(values):
                    values[place] = float(value)
    return values


def _named(schema: Object, field: Object, name: str) -> dict[str, str]:
    """Find the name of a series that its labels do not give."""
    config = field.get("config")
    shown = config.get("displayNameFromDS") if isinstance(config, dict) else None
    for text in (shown, name, schema.get("name")):
        if isinstance(text, str) and text.strip().lower() not in _UNNAMED:
            labels = labels_of(text)
            if "__name__" in labels and re.fullmatch(r"[a-zA-Z_:][\w:]*", labels["__name__"]):
                return labels
    meta = schema.get("meta")
    query = meta.get("executedQueryString") if isinstance(meta, dict) else None
    expression = _EXPRESSION.match(query) if isinstance(query, str) else None
    return {"__name__": expression[1]} if expression is not None else {}


def _add_frame(rows: Rows, fields: list[Field], offset: int) -> bool:
    """Add the points of one frame; False when it has no time or no numbers."""
    time = next((field for field in fields if field.kind == "time"), None)
    numbers = [field for field in fields if field.kind == "number"]
    if time is None or not numbers:
        return False
    texts = [field for field in fields if field.kind == "string"]
    for field in numbers:
        keys: dict[tuple[object, ...], int] = {}
        for index, value in enumerate(field.cells):
            stamp = _item(time.cells, index)
            if not isinstance(value, int | float) or not isinstance(stamp, int | float):
                continue
            cells = tuple(_item(text.cells, index) for text in texts)
            key = keys.get(cells)
            if key is None:
                columns = {text.name: str(cell) for text, cell in zip(texts, cells, strict=True)}
                key = rows.key(series_name({**field.labels, **columns}), offset)
                keys[cells] = key
            rows.add(key, float(stamp) / 1000, float(value))
    return True
