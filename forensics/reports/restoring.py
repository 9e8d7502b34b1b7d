"""The JSON document → Analysis: what `document` wrote, read back and checked on the way."""

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass

from forensics import analysis as records
from forensics.analysis import SCHEMA_VERSION, Analysis
from forensics.catalog.messages import Message
from forensics.ceiling.records import Ceiling, Sweep
from forensics.errors import InputError
from forensics.reports.instants import seconds
from forensics.reports.shape import INSTANTS, INTERVALS, PAIRS, RENAMED, SPARSE, Json, hints, says
from forensics.verdict import Verdict

T = typing.TypeVar("T")


def restore(tree: object) -> Analysis:
    """Read a document back into the records it was made from.

    Raises:
        InputError: the tree is not a document of a schema version this release reads.
    """
    top = _table(tree, "the document")
    stated = top.get("schema_version")
    if str(stated).split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise InputError(
            f"the document says schema_version {stated!r}; this release reads {SCHEMA_VERSION}"
        )
    timeline = _table(top.get("timeline"), "timeline")
    coverage = _table(top.get("coverage"), "coverage")
    return Analysis(
        tool_version=str(_table(top.get("tool"), "tool").get("version")),
        window=_restored_interval(top.get("window"), "window"),
        verdict=_restored(Verdict, top.get("verdict"), "verdict"),
        findings=_all(records.Finding, top.get("findings"), "findings"),
        decompositions=_all(records.Decomposition, top.get("decomposition"), "decomposition"),
        impact=_restored(records.Impact, top.get("impact"), "impact"),
        engines=_all(records.EngineView, top.get("engines"), "engines"),
        ceilings=_all(Ceiling, top.get("ceilings"), "ceilings"),
        sweep=_restored_sweep(top),
        clocks=_all(records.ClockView, top.get("clocks"), "clocks"),
        tracks=_restored_tracks(timeline),
        files=tuple(_restored_file(item) for item in _list(coverage.get("files"), "files")),
        not_evaluated=_all(records.NotEvaluated, top.get("not_evaluated"), "not_evaluated"),
        weighed=_all(records.Weighed, top.get("weighed"), "weighed"),
        reproduce=None if top.get("reproduce") is None else str(top["reproduce"]),
    )


def _restored_tracks(timeline: Json) -> tuple[records.EngineTracks, ...]:
    steps = _table(timeline.get("steps_s"), "timeline.steps_s")
    marks = [_table(item, "timeline.marks") for item in _list(timeline.get("marks"), "marks")]
    episodes = [
        _table(item, "timeline.episodes") for item in _list(timeline.get("episodes"), "episodes")
    ]
    return tuple(
        records.EngineTracks(
            engine=engine,
            step_s=_number(steps.get(engine), f"timeline.steps_s.{engine}"),
            signals={
                name: _restored_track(track, f"timeline.engines.{engine}.{name}")
                for name, track in _table(signals, f"timeline.engines.{engine}").items()
            },
            marks=tuple(
                _restored(records.MarkView, mark, "timeline.marks")
                for mark in marks
                if mark.get("engine") == engine
            ),
            episodes=tuple(
                (seconds(str(row["start"])), seconds(str(row["end"])), str(row["signal"]))
                for row in episodes
                if row.get("engine") == engine
            ),
        )
        for engine, signals in _table(timeline.get("engines"), "timeline.engines").items()
    )


def _restored_track(tree: object, at: str) -> records.Track:
    row = _table(tree, at)
    return records.Track(
        times=tuple(seconds(str(time)) for time in _list(row.get("times"), f"{at}.times")),
        values=tuple(
            None if value is None else _number(value, f"{at}.values")
            for value in _list(row.get("values"), f"{at}.values")
        ),
        clock=str(row.get("clock", "metrics")),
    )


def _restored_file(tree: object) -> records.FileView:
    row = dict(_table(tree, "coverage.files"))
    lines = _table(row.get("lines"), "coverage.files.lines")
    row["lines"] = lines.get("total")
    row["kind_bytes"] = lines.get("bytes")  # earlier documents have none
    row.update({name: value for name, value in lines.items() if name not in ("total", "bytes")})
    return _restored(records.FileView, row, "coverage.files")


def _restored_sweep(top: Json) -> Sweep | None:
    if top.get("sweep") is None:
        return None
    summary = dict(_table(top.get("sweep_summary"), "sweep_summary"))
    summary["rows"] = top["sweep"]
    return _restored(Sweep, summary, "sweep")


def _all(cls: type[T], tree: object, at: str) -> tuple[T, ...]:
    return tuple(_restored(cls, item, at) for item in _list(tree, at))


def _restored(cls: type[T], tree: object, at: str) -> T:
    row = _table(tree, at)
    given: dict[str, object] = {}
    for item in fields(typing.cast(type[records.Where], cls)):
        hint = hints(cls).get(item.name)
        key = RENAMED.get((cls, item.name), item.name)
        if hint is None or key not in row:
            if item.default is MISSING and item.default_factory is MISSING:
                if cls in SPARSE:
                    given[item.name] = None
                    continue
                raise InputError(f"{at} lacks {key!r}")
            continue
        given[item.name] = _restored_field(cls, item.name, row, key, at)
    return cls(**given)


def _restored_field(cls: type[object], name: str, row: Json, key: str, at: str) -> object:
    value, hint, at = row[key], hints(cls)[name], f"{at}.{key}"
    if (cls, name) in INSTANTS:
        return None if value is None else seconds(str(value))
    if (cls, name) in INTERVALS:
        return _restored_interval(value, at)
    if (cls, name) in PAIRS:
        return _restored_pairs(value, PAIRS[cls, name], at)
    if says(hint):
        return _restored_message(row.get(f"{key}_message"), at)
    return _shaped(value, hint, at)


def _restored_pairs(value: object, names: tuple[str, ...], at: str) -> object:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_restored_pairs(item, names, at) for item in value)
    row = _table(value, at)
    return tuple(row.get(name) for name in names)


def _restored_message(tree: object, at: str) -> Message | tuple[object, ...] | None:
    if tree is None:
        return None
    if isinstance(tree, list):
        return tuple(_restored_message(item, at) for item in tree)
    row = _table(tree, at)
    values = _table(row.get("values"), f"{at}.values")
    for name, value in values.items():
        if value is not None and not isinstance(value, str | int | float):
            raise InputError(f"{at}.values.{name} is neither text nor a number")
    return Message(str(row.get("key")), typing.cast(Mapping[str, float | int | str | None], values))


def _restored_interval(tree: object, at: str) -> tuple[float, float] | None:
    if tree is None:
        return None
    row = _table(tree, at)
    return seconds(str(row.get("start"))), seconds(str(row.get("end")))


def _shaped(value: object, hint: object, at: str) -> object:
    """Give a JSON value the type a record's field declares."""
    options = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        if value is None or not isinstance(value, dict | list):
            return value
        return _shaped(value, next(one for one in options if one is not types.NoneType), at)
    if isinstance(hint, type) and is_dataclass(hint):
        return _restored(hint, value, at)
    if typing.get_origin(hint) is tuple:
        return tuple(_shaped(item, options[0], at) for item in _list(value, at))
    if typing.get_origin(hint) is Mapping:
        return {key: _shaped(item, options[1], at) for key, item in _table(value, at).items()}
    if hint is float:
        return math.inf if value is None else _number(value, at)
    return value


def _table(tree: object, at: str) -> Json:
    if not isinstance(tree, dict):
        raise InputError(f"{at} should be an object")
    return tree


def _list(tree: object, at: str) -> list[object]:
    if not isinstance(tree, list):
        raise InputError(f"{at} should be a list")
    return tree


def _number(value: object, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{at} should be a number")
    return value
