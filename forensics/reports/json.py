"""Analysis → one JSON document, byte-identical for identical input; and back.

The shape is described by `schema/analysis.schema.json` (made by `forensics.reports.schema`). Every
other report can be made from this document alone, which is what `forensics compare` does.
"""

from collections.abc import Sequence

import orjson

from forensics.analysis import SCHEMA_VERSION, Analysis
from forensics.ceiling.records import Ceiling
from forensics.errors import InputError
from forensics.reports.document import document, listed
from forensics.reports.restoring import restore
from forensics.reports.shape import Json

_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def render(analysis: Analysis) -> str:
    """Write an analysis as JSON text, one value per line but for the points of the timeline."""
    return _text(document(analysis))


def render_ceilings(ceilings: Sequence[Ceiling], tool_version: str) -> str:
    """Write the document of `forensics ceiling --format json`."""
    return _text(
        {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "forensics", "version": tool_version},
            "ceilings": listed(ceilings),
        }
    )


def load(text: str | bytes) -> Analysis:
    """Read a saved document back.

    Raises:
        InputError: the text is not JSON, or not such a document; the message says where.
    """
    try:
        tree: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not a JSON document: {error}") from None
    return restore(tree)


def _text(tree: Json) -> str:
    timeline = tree.get("timeline")
    if isinstance(timeline, dict):
        tree = {**tree, "timeline": {**timeline, "engines": _compact(timeline["engines"])}}
    return orjson.dumps(tree, option=_OPTIONS).decode()


def _compact(engines: dict[str, dict[str, Json]]) -> Json:
    """Keep the points of a signal on one line each for times and values: pages less to scroll."""
    return {
        engine: {
            name: {
                key: orjson.Fragment(orjson.dumps(value)) if isinstance(value, list) else value
                for key, value in track.items()
            }
            for name, track in signals.items()
        }
        for engine, signals in engines.items()
    }
