"""The records → the JSON Schema of the document, so that the published schema cannot fall behind.

``python -m forensics.reports.schema`` rewrites `schema/analysis.schema.json`; a test compares the
stored file with what this module makes. Descriptions come from the records' own docstrings.
"""

import inspect
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path

import orjson

from forensics import analysis as records
from forensics.analysis import SCHEMA_VERSION, Analysis
from forensics.catalog.messages import Message
from forensics.ceiling.records import Ceiling, Sweep, SweepRow
from forensics.reports.shape import INSTANTS, INTERVALS, PAIRS, RENAMED, SPARSE, Json, hints, says
from forensics.verdict import Verdict

STORED = Path(__file__).with_name("schema") / "analysis.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PRIMITIVES: dict[object, Json] = {
    float: {"type": ["number", "null"]},
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
}
_INSTANT: Json = {"type": "string", "format": "date-time", "pattern": "Z$"}


def schema() -> Json:
    """Make the JSON Schema of the whole document."""
    defs: dict[str, Json] = {}
    top = hints(Analysis)
    tracks = records.EngineTracks
    properties: Json = {
        "schema_version": {"const": SCHEMA_VERSION},
        "tool": _closed({"name": {"const": "forensics"}, "version": {"type": "string"}}),
        "window": _nullable(_interval()),
        "verdict": _reference(Verdict, defs),
        "findings": _many(_reference(records.Finding, defs)),
        "decomposition": _many(_reference(records.Decomposition, defs)),
        "impact": _reference(records.Impact, defs),
        "engines": _many(_reference(records.EngineView, defs)),
        "ceilings": _many(_reference(Ceiling, defs)),
        "sweep": _nullable(_many(_reference(SweepRow, defs))),
        "sweep_summary": _nullable(_without(_reference(Sweep, defs), "rows", defs)),
        "clocks": _many(_reference(records.ClockView, defs)),
        "timeline": _closed(
            {
                "step_s": {"type": ["number", "null"]},
                "steps_s": {"type": "object", "additionalProperties": {"type": "number"}},
                "engines": _map(_map(_track())),
                "marks": _many(_with_engine(_reference(records.MarkView, defs), defs)),
                "episodes": _many(
                    _closed(
                        {
                            "engine": {"type": "string"},
                            "start": _INSTANT,
                            "end": _INSTANT,
                            "signal": {"type": "string"},
                        }
                    )
                ),
            },
            _first_line(tracks),
        ),
        "coverage": _closed({"files": _many(_file(defs))}),
        "not_evaluated": _many(_reference(records.NotEvaluated, defs)),
        "weighed": _many(_reference(records.Weighed, defs)),
        "reproduce": _typed(top["reproduce"], defs),
    }
    return {
        "$schema": _DIALECT,
        "$id": f"forensics/analysis-{SCHEMA_VERSION}.schema.json",
        "title": "Result of `forensics analyze --format json`",
        "description": (
            "Times are ISO 8601 UTC. Rates, usages, shares and confidences are fractions 0-1. "
            "null means not observed, never zero. A field `<name>_message` holds the sentence of "
            "`<name>` as key and values, for other languages."
        ),
        **_closed(properties),
        "$defs": dict(sorted(defs.items())),
    }


def text() -> str:
    """Write the schema as it is stored."""
    return orjson.dumps(schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _reference(cls: type[object], defs: dict[str, Json]) -> Json:
    name = cls.__name__
    if name not in defs:
        defs[name] = {}
        defs[name] = _object(cls, defs)
    return {"$ref": f"#/$defs/{name}"}


def _object(cls: type[object], defs: dict[str, Json]) -> Json:
    properties: Json = {}
    for field, hint in hints(cls).items():
        key = RENAMED.get((cls, field), field)
        if says(hint):
            properties[key], properties[f"{key}_message"] = _sentences(hint)
            continue
        made = _field(cls, field, hint, defs)
        properties[key] = made
        about = _attributes(cls).get(field)
        if about and "$ref" not in made:
            properties[key] = {**made, "description": about}
    closed = _closed(properties, _first_line(cls))
    if cls in SPARSE:
        closed["required"] = ["file"]
    return closed


def _field(cls: type[object], field: str, hint: object, defs: dict[str, Json]) -> Json:
    optional = types.NoneType in typing.get_args(hint)
    if (cls, field) in INSTANTS:
        return _nullable(_INSTANT) if optional else _INSTANT
    if (cls, field) in INTERVALS:
        return _nullable(_interval()) if optional else _interval()
    if (cls, field) in PAIRS:
        inner: Json = _closed({name: _pair_part(name) for name in PAIRS[cls, field]})
        repeated = Ellipsis in typing.get_args(hint)
        return _many(inner) if repeated else _nullable(inner)
    return _typed(hint, defs)


def _pair_part(name: str) -> Json:
    if name in ("count", "line"):
        return {"type": "integer"}
    return {"type": "string"} if name in ("cause", "shape", "reason") else {"type": "number"}


def _sentences(hint: object) -> tuple[Json, Json]:
    kept = _closed(
        {
            "key": {"type": "string"},
            "values": _map({"type": ["string", "number", "null"]}),
        }
    )
    if typing.get_origin(hint) is tuple:
        return _many({"type": "string"}), _many(kept)
    if hint is Message:
        return {"type": "string"}, kept
    return {"type": ["string", "null"]}, _nullable(kept)


def _typed(hint: object, defs: dict[str, Json]) -> Json:
    if isinstance(hint, types.UnionType):
        parts = [_typed(part, defs) for part in typing.get_args(hint)]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}
    if isinstance(hint, type) and is_dataclass(hint):
        return _reference(hint, defs)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return _many(_typed(arguments[0], defs))
    if typing.get_origin(hint) is Mapping:
        return _map(_typed(arguments[1], defs))
    return dict(_PRIMITIVES[hint])


def _file(defs: dict[str, Json]) -> Json:
    made = _object(records.FileView, defs)
    properties = typing.cast(Json, dict(typing.cast(Json, made["properties"])))
    lines: Json = {"total": properties.pop("lines")}
    for name in ("matched", "ignored", "unknown", "damaged"):
        lines[name] = properties.pop(name)
    lines["bytes"] = properties.pop("kind_bytes")
    return _closed({**properties, "lines": _closed(lines)}, _first_line(records.FileView))


def _track() -> Json:
    return _closed(
        {
            "clock": {"enum": ["metrics", "log"]},
            "times": _many(_INSTANT),
            "values": _many({"type": ["number", "null"]}),
        },
        _first_line(records.Track),
    )


def _with_engine(reference: Json, defs: dict[str, Json]) -> Json:
    name = str(reference["$ref"]).rsplit("/", 1)[-1]
    inner = defs.pop(name)
    properties = typing.cast(Json, inner["properties"])
    return _closed({"engine": {"type": "string"}, **properties}, str(inner["description"]))


def _without(reference: Json, field: str, defs: dict[str, Json]) -> Json:
    inner = defs.pop(str(reference["$ref"]).rsplit("/", 1)[-1])
    properties = typing.cast(Json, inner["properties"])
    kept = {key: value for key, value in properties.items() if key != field}
    return _closed(kept, str(inner["description"]))


def _closed(properties: Json, description: str | None = None) -> Json:
    made: Json = {} if description is None else {"description": description}
    return {
        **made,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _interval() -> Json:
    return _closed({"start": _INSTANT, "end": _INSTANT})


def _nullable(inner: Json) -> Json:
    return {"anyOf": [inner, {"type": "null"}]}


def _many(inner: Json) -> Json:
    return {"type": "array", "items": inner}


def _map(inner: Json) -> Json:
    return {"type": "object", "additionalProperties": inner}


def _first_line(cls: type[object]) -> str:
    return (inspect.getdoc(cls) or cls.__name__).splitlines()[0]


def _attributes(cls: type[object]) -> Mapping[str, str]:
    """Read the `Attributes:` block of a record's docstring."""
    doc = inspect.getdoc(cls) or ""
    block = doc.partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: " ".join(about.split()) for name, about in found}


if __name__ == "__main__":
    STORED.write_text(text(), encoding="utf-8")
