"""Analysis → the JSON document, field by field; see `shape` for where the two differ.

A field added to a record appears in the document by itself, and the schema test then asks for the
schema to follow.
"""

import math
import typing
from collections.abc import Iterable, Mapping

from forensics import analysis as records
from forensics.analysis import SCHEMA_VERSION, Analysis
from forensics.catalog.messages import Message, render
from forensics.ceiling.records import Sweep
from forensics.reports.instants import iso
from forensics.reports.shape import INSTANTS, INTERVALS, PAIRS, RENAMED, SPARSE, Json, hints, says


def document(analysis: Analysis) -> Json:
    """Lay an analysis out in the published shape; equal analyses give equal documents."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "forensics", "version": analysis.tool_version},
        "window": _interval(analysis.window),
        "verdict": _record(analysis.verdict),
        "findings": [_record(item) for item in analysis.findings],
        "decomposition": [_record(item) for item in analysis.decompositions],
        "impact": _record(analysis.impact),
        "engines": [_record(item) for item in analysis.engines],
        "ceilings": [_record(item) for item in analysis.ceilings],
        "sweep": [_record(row) for row in analysis.sweep.rows] if analysis.sweep else None,
        "sweep_summary": _sweep_summary(analysis.sweep),
        "clocks": [_record(item) for item in analysis.clocks],
        "timeline": _timeline(analysis.tracks),
        "coverage": {"files": [_file(item) for item in analysis.files]},
        "not_evaluated": [_record(item) for item in analysis.not_evaluated],
        "weighed": [_record(item) for item in analysis.weighed],
        "reproduce": _value(analysis.reproduce),
    }


def listed(items: Iterable[object]) -> list[Json]:
    """Lay records out one by one, in the shape they have inside the document."""
    return [_record(item) for item in items]


def _record(record: object) -> Json:
    cls = type(record)
    out: Json = {}
    for name, hint in hints(cls).items():
        value = getattr(record, name)
        key = RENAMED.get((cls, name), name)
        if value is None and cls in SPARSE:
            continue
        if (cls, name) in INSTANTS:
            out[key] = None if value is None else iso(value)
        elif (cls, name) in INTERVALS:
            out[key] = _interval(value)
        elif (cls, name) in PAIRS:
            out[key] = _pairs(value, PAIRS[cls, name], hint)
        elif says(hint):
            out[key], out[f"{key}_message"] = _said(value)
        else:
            out[key] = _value(value)
    return out


def _said(value: object) -> tuple[object, object]:
    if isinstance(value, Message):
        values = {name: _value(item) for name, item in value.values.items()}
        return _text(render(value)), {"key": value.key, "values": values}
    if isinstance(value, tuple):
        both = [_said(item) for item in value]
        return [said for said, _ in both], [kept for _, kept in both]
    return None, None


def _value(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        # Integers beyond 64 bits are not portable JSON; such a count is damage, not a measurement.
        return int(value) if -(2**63) <= value < 2**64 else float(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_text(str(key)): _value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return _record(value)


def _text(text: str) -> str:
    # Undecodable bytes of file names travel as lone surrogates, which JSON cannot carry.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _interval(value: tuple[float, float] | None) -> Json | None:
    return None if value is None else {"start": iso(value[0]), "end": iso(value[1])}


def _pairs(value: object, names: tuple[str, ...], hint: object) -> object:
    if value is None:
        return None
    rows = typing.cast(tuple[object, ...], value)
    if Ellipsis in typing.get_args(hint):
        return [_named(typing.cast(tuple[object, ...], row), names) for row in rows]
    return _named(rows, names)


def _named(row: tuple[object, ...], names: tuple[str, ...]) -> Json:
    return {name: _value(item) for name, item in zip(names, row, strict=True)}


def _sweep_summary(sweep: Sweep | None) -> Json | None:
    if sweep is None:
        return None
    return {key: value for key, value in _record(sweep).items() if key != "rows"}


def _timeline(tracks: tuple[records.EngineTracks, ...]) -> Json:
    steps = {track.engine: _value(track.step_s) for track in tracks}
    return {
        "step_s": min((track.step_s for track in tracks), default=None),
        "steps_s": steps,
        "engines": {
            _text(track.engine): {
                name: {
                    "clock": signal.clock,
                    "times": [iso(time) for time in signal.times],
                    "values": [_value(value) for value in signal.values],
                }
                for name, signal in track.signals.items()
            }
            for track in tracks
        },
        "marks": [
            {"engine": _text(track.engine), **_record(mark)}
            for track in tracks
            for mark in track.marks
        ],
        "episodes": [
            {"engine": _text(track.engine), "start": iso(start), "end": iso(end), "signal": signal}
            for track in tracks
            for start, end, signal in track.episodes
        ],
    }


def _file(view: records.FileView) -> Json:
    row = _record(view)
    lines: Json = {"total": row.pop("lines")}
    for name in ("matched", "ignored", "unknown", "damaged"):
        lines[name] = row.pop(name)
    lines["bytes"] = row.pop("kind_bytes")
    return {
        "path": row.pop("path"),
        "format": row.pop("format"),
        "bytes": row.pop("bytes"),
        "lines": lines,
        **row,
    }
