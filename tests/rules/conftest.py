"""Named cases in YAML → an engine's timeline → what one rule thinks of it.

A case is written in a small series notation, one point per step:

    hit_rate: 0.78x20 0.31~0.02x20      20 points at 0.78, 20 at 0.31 with noise of sd 0.02
    running: 2..40x30                   a ramp over 30 points
    waiting: 0x10 _x5 3x10              five points missing (a gap: null, never zero)

Gauges are values, amounts are per step, as in the grid. A test module ``test_<rule>.py`` asks for
`rule_case`; its cases stand beside it in ``<rule>.yaml``. It is one module, because tests of one
folder cannot import each other and all families share the notation.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pytest
import yaml

from forensics.attribution import Attribution, Part
from forensics.catalog.messages import LANGUAGES, render
from forensics.diary import EngineDiary, Epoch, KvPool, Stated, Version
from forensics.episodes import changes_of
from forensics.evidence import Place
from forensics.pipeline.judge import cases_of
from forensics.timeline import SIGNALS, EngineTimeline, Histogram, Mark, Origin
from forensics.timeline.derived import derive
from forensics.timeline.grid import SCHEMA, Columns
from rules import RULES, Opinion, Rule, missing_for

T0 = 1_800_000_000.0
_PIECE = re.compile(
    r"(?P<value>_|\d+(?:\.\d+)?)(?:\.\.(?P<to>\d+(?:\.\d+)?))?(?:~(?P<sd>\d+(?:\.\d+)?))?"
    r"(?:x(?P<n>\d+))?"
)
_EXPECT = {"weight", "certain", "summary", "onset", "end", "share", "severity", "missing", "note"}


def series(text: str, seed: str) -> np.ndarray:
    """Expand the notation; `_` is a gap (NaN). The noise depends on the case and signal only."""
    rng = np.random.default_rng(crc32(seed.encode()))
    parts: list[np.ndarray] = []
    for word in str(text).split():
        match = _PIECE.fullmatch(word)
        if match is None:
            raise ValueError(f"not in the series notation: {word!r}")
        count = int(match["n"] or 1)
        if match["value"] == "_":
            parts.append(np.full(count, np.nan))
            continue
        value = float(match["value"])
        points = (
            np.linspace(value, float(match["to"]), count) if match["to"] else np.full(count, value)
        )
        if match["sd"]:
            points = np.clip(points + rng.normal(0.0, float(match["sd"]), count), 0.0, None)
        parts.append(points)
    return np.concatenate(parts)


def epoch_of(told: Mapping[str, Any]) -> Epoch:
    """Make an epoch from what a case tells: version, pool, block size, limits, flags."""
    told = dict(told)
    version = told.pop("version", None)
    tokens, block = told.pop("pool_tokens", None), told.pop("block_size", None)
    place = Place(0, offset=0)
    flags = {name: Stated(str(value), place) for name, value in told.pop("flags", {}).items()}
    if "max_num_seqs" in told:
        told["max_num_seqs_stated"] = Stated(str(told["max_num_seqs"]), place)
    if "prefix_caching" in told:
        told["prefix_caching_stated"] = Stated(str(told["prefix_caching"]), place)
    if "model" in told:
        told["model"] = Stated(told["model"], place)
    return Epoch(
        start=told.pop("start", None),
        end=None,
        version=Version.parse(version) if version else None,
        pool=KvPool(
            tokens=tokens,
            blocks=tokens // block if tokens and block else None,
            block_size=block,
            max_concurrency=told.pop("max_concurrency", None),
            place=place,
        ),
        flags=flags,
        **told,
    )


def timeline_of(
    told: Mapping[str, Any], seed: str, engine: str = "0", inherit: Mapping[str, Any] | None = None
) -> EngineTimeline:
    """Lay a case's series on a grid, with the rates that production derives from amounts."""
    step = float(told.get("step", 10))
    epochs = [epoch_of(item) for item in _list(told.get("epoch", (inherit or {}).get("epoch", {})))]
    epochs = [
        replace(epoch, start=None if epoch.start is None else T0 + epoch.start) for epoch in epochs
    ]
    pool = epochs[-1].pool.tokens
    main = _columns(told.get("series", {}), step, pool, seed)
    log = (
        _columns(told["log"], float(told.get("log_step", 10)), pool, seed)
        if "log" in told
        else None
    )
    empty = pl.DataFrame(schema=SCHEMA)
    grid = main.frame() if main is not None else log.frame() if log is not None else empty
    shown = main or log
    marks = [
        Mark(T0 + item["at"], item["kind"], item.get("text", item["kind"]), Place(0, offset=0))
        for item in told.get("marks", [])
    ]
    origins = {} if shown is None else {
        name: Origin("metrics" if main else "log", 0, name)
        for name in SIGNALS
        if grid[name].null_count() < grid.height
    }  # fmt: skip
    until = told.get("seen_until")
    return EngineTimeline(
        engine=engine,
        instance=None,
        step_s=shown.step if shown else 0.0,
        grid=grid,
        log_grid=log.frame() if log is not None else empty,
        origins=origins,
        marks=tuple(sorted(marks, key=lambda mark: mark.time)),
        diary=EngineDiary(engine, None, engine, tuple(epochs)),
        histograms={
            name: _histogram(item, shown.times if shown else np.array([]))
            for name, item in told.get("histograms", {}).items()
        },
        seen_until=None if until is None else T0 + until,
    )


def _columns(told: Mapping[str, str], step: float, pool: int | None, seed: str) -> Columns | None:
    if not told:
        return None
    values = {name: series(text, f"{seed}/{name}") for name, text in told.items()}
    count = max(array.size for array in values.values())
    for name, array in values.items():
        if name not in SIGNALS:
            raise ValueError(f"no such signal: {name}")
        if array.size == 1:
            values[name] = np.full(count, array[0])
        elif array.size != count:
            raise ValueError(f"{name} has {array.size} points, the case has {count}")
    times = T0 + step * np.arange(count)
    present = ~np.all([np.isnan(array) for array in values.values()], axis=0)
    columns = Columns(T0, step, times, present, values, resets=np.zeros(count, dtype=bool))
    columns.origins = {name: Origin("metrics", 0, name) for name in values}
    if "hit_rate" in values and "hit_weight" not in values:
        columns.values["hit_weight"] = values.get("prompt_tokens", np.full(count, 20_000.0))
    for rate, amount in (("prompt_tps", "prompt_tokens"), ("generation_tps", "generation_tokens")):
        if rate in values and amount not in values:  # stats lines print rates only
            columns.values[amount] = columns.get(rate) * columns.elapsed()
            columns.origins[amount] = Origin("log", 0, "stats_periodic")
    derive(columns, np.full(count, float(pool)) if pool else None)
    return columns


def _histogram(told: Mapping[str, Any], times: np.ndarray) -> Histogram:
    """Make a histogram whose cumulative shares are the same in every interval."""
    edges = np.array([*told["edges"], np.inf], dtype=float)
    shares = np.array([*told["shares"], 1.0])
    counts = np.tile(shares * float(told.get("requests", 50)), (times.size, 1))
    return Histogram(edges, times, counts, "vllm:request_prompt_tokens")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class RuleCase:
    """One named case of one rule."""

    rule: Rule
    name: str
    told: Mapping[str, Any] = field(default_factory=dict)

    def opinions(self) -> list[Opinion]:
        """Ask the rule about every case of the engine, as the pipeline does."""
        timeline = timeline_of(self.told, self.name)
        peers = [
            timeline_of(peer, f"{self.name}/{name}", str(name), self.told)
            for name, peer in self.told.get("peers", {}).items()
        ]
        if missing_for(self.rule, timeline):
            return []
        found: list[Opinion] = []
        for case in cases_of(timeline, changes_of(timeline), (timeline, *peers)):
            about = "window" if case.episode is None else "episode"
            if self.rule.scope not in (about, "both"):
                continue
            if case.episode is not None and "attribution" in self.told:
                case = replace(case, attribution=_attribution(self.told["attribution"]))
            opinion = self.rule.evaluate(case)
            if opinion is not None and (opinion.weight > 0 or opinion.certain):
                found.append(opinion)
        return found

    def holds(self) -> None:
        """Check the case: silent, not evaluated for lack of evidence, or fires as told."""
        if "not_evaluated" in self.told:
            missing = missing_for(self.rule, timeline_of(self.told, self.name))
            assert list(missing) == self.told["not_evaluated"]
            return
        found = self.opinions()
        if self.told.get("silent"):
            assert [(one.rule_id, round(one.weight, 2), one.summary.key) for one in found] == []
            return
        assert found, "the rule is silent"
        strongest = max(found, key=lambda one: one.weight)
        expected = self.told["fires"]
        assert set(expected) <= _EXPECT, f"unknown expectation in {expected}"
        low, high = expected["weight"]
        assert low <= strongest.weight <= high, f"weight {strongest.weight:.3f}"
        assert strongest.rule_id == self.rule.id and strongest.cause == self.rule.name
        assert strongest.for_ and strongest.actions
        _said(strongest)
        self._details(strongest, expected)

    def _details(self, opinion: Opinion, expected: Mapping[str, Any]) -> None:
        if "summary" in expected:
            assert opinion.summary.key == expected["summary"]
        if "certain" in expected:
            assert opinion.certain is expected["certain"]
        if "severity" in expected:
            assert opinion.severity == expected["severity"]
        if "note" in expected:
            assert expected["note"] in {one.note.key for one in opinion.for_ if one.note}
        if "missing" in expected:
            assert list(opinion.missing) == expected["missing"]
        if "share" in expected:
            assert opinion.share is not None
            assert expected["share"][0] <= opinion.share <= expected["share"][1]
        if "onset" in expected:
            assert opinion.onset is not None
            early, late = (T0 + value for value in expected["onset"])
            assert early <= opinion.onset[0] <= opinion.onset[1] <= late, [
                value - T0 for value in opinion.onset
            ]
        if "end" in expected:
            if expected["end"] is None:
                assert opinion.end is None
            else:
                assert opinion.end is not None
                assert abs(opinion.end - T0 - expected["end"]) <= 15, opinion.end - T0


def _said(opinion: Opinion) -> None:
    """Say everything an opinion wants said, in every language, with all values it needs."""
    messages = [opinion.summary, opinion.would_decide]
    messages += [exhibit.note for exhibit in (*opinion.for_, *opinion.against)]
    for action in opinion.actions:
        messages += [action.text, action.effect]
    for message in messages:
        if message is not None:
            assert all("{" not in render(message, lang) for lang in LANGUAGES)
    for exhibit in (*opinion.for_, *opinion.against):
        assert exhibit.before is not None or exhibit.after is not None, exhibit.signal


def _attribution(told: Mapping[str, Any]) -> Attribution:
    """Take the parts of the fall as given: a rule is tested apart from the split."""
    parts = tuple(
        Part(name, told.get(name, 0.0), told.get(name, 0.0), told.get(name, 0.0))
        for name in ("diversity", "capacity", "cold", "counting")
    )
    fall = sum(part.value for part in parts)
    return Attribution(
        before=told.get("before", fall),
        after=told.get("before", fall) - fall,
        parts=parts,
        decided=told.get("decided", True),
        basis=told.get("basis", "score"),
    )


class _Loader(yaml.SafeLoader):
    """SafeLoader that leaves ``0x30`` a series of thirty zeros instead of the number 48."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:int"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9]\d*)$"), list("-+0123456789")
)


def cases_beside(module: Path) -> list[RuleCase]:
    """Read the cases that stand beside a test module."""
    path = module.with_name(module.stem.removeprefix("test_") + ".yaml")
    document = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    rule = next(rule for rule in RULES if rule.id == document["rule"])
    defaults = document.get("defaults", {})
    found: list[RuleCase] = []
    for told in document["cases"]:
        merged = {**defaults, **told}
        merged["series"] = {**defaults.get("series", {}), **told.get("series", {})}
        if told.get("series") is None and "log" in told:
            merged["series"] = {}
        merged["series"] = {k: v for k, v in merged["series"].items() if v is not None}
        if isinstance(told.get("epoch"), dict):
            merged["epoch"] = {**defaults.get("epoch", {}), **told["epoch"]}
        found.append(RuleCase(rule, told["name"], merged))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every test that asks for `rule_case` the cases beside its module."""
    if "rule_case" in metafunc.fixturenames:
        cases = cases_beside(Path(str(metafunc.module.__file__)))
        metafunc.parametrize("rule_case", cases, ids=[case.name for case in cases])
