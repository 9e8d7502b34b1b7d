"""Reads API answers whose keys stand in an unusual order, as whole JSON documents.

This is the slow and general way: any order of keys, several documents, junk between them.
"""

import re
from collections.abc import Callable, Iterator

import orjson

from parsers.prometheus.matrix_scan import Head, Region

_OPENING = re.compile(rb'\{\s*["}]|\[\s*[\[{"\]0-9-]')
_KINDS = ("values", "value", "histograms", "histogram")
_MAX_LEVELS = 6  # list of documents, document, data, result, series: nothing lies deeper


def result_objects(data: bytes, damaged: Callable[[int, str], None]) -> Iterator[list[Region]]:
    """Yield the series of each document in `data`.

    Args:
        data: the whole source.
        damaged: told of (offset, reason).
    """
    for document, offset in documents(data, damaged):
        found = list(_series(document, offset, 0))
        if found:
            yield found


def documents(data: bytes, damaged: Callable[[int, str], None]) -> Iterator[tuple[object, int]]:
    """Yield the JSON documents in `data` with their offsets, skipping what is none."""
    text = data.strip()
    try:
        yield orjson.loads(text), 0
        return
    except orjson.JSONDecodeError:
        pass  # several documents, or junk around them: cut them apart below
    position = 0
    while (opening := _OPENING.search(data, position)) is not None:
        start = opening.start()
        end = _document_end(data, start)
        if end is None:
            damaged(start, "a JSON document without an end")
            return
        try:
            yield orjson.loads(data[start:end]), start
        except orjson.JSONDecodeError:
            damaged(start, "expected a JSON document")
        position = end


_TOKENS = re.compile(rb'[\[\]{}]|"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def _document_end(data: bytes, start: int) -> int | None:
    """Find the end of the document that starts with a bracket at `start`."""
    depth = 0
    for token in _TOKENS.finditer(data, start):
        if token[0] in b"[{":
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
        if depth == 0:
            return token.end()
    return None


def _series(node: object, offset: int, level: int) -> Iterator[Region]:
    """Walk down to the objects that have labels and points."""
    if level > _MAX_LEVELS:
        return
    if isinstance(node, list):
        for item in node:
            yield from _series(item, offset, level + 1)
    elif isinstance(node, dict):
        labels = node.get("metric")
        kinds = [kind for kind in _KINDS if kind in node]
        if isinstance(labels, dict) and kinds:
            names = {str(key): str(value) for key, value in labels.items()}
            for kind in kinds:
                text = orjson.dumps(node[kind])
                if kind == "values":
                    text = text[1:-1]
                yield Region(Head(names, kind, offset), text, offset, text.count(b"["))
        else:
            for item in node.values():
                yield from _series(item, offset, level + 1)
