"""The metric families of vLLM by release, read from `metrics.toml`.

A family is what the server's code defines (`vllm:prefix_cache_hits`); a sample is what a scrape
shows (`vllm:prefix_cache_hits_total`). The traps: `vllm:iteration_tokens_total` is a histogram,
`vllm:kv_offload_total_bytes` a counter exposed as `vllm:kv_offload_total_bytes_total`; `perc` in a
name never means percent, all usages and rates are fractions. Some pipelines turn the colon into an
underscore: both spellings are found.

Since 0.8.0 a deprecated metric is first hidden (exposed only when
`--show-hidden-metrics-for-version` equals the previous minor release), then deleted.
"""

import tomllib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Literal, TypedDict, cast

from forensics.catalog.versions import Generation, Span, Version, version

MetricType = Literal["counter", "gauge", "histogram", "info"]
Role = Literal["value", "total", "bucket", "sum", "count", "created", "info"]


class Exposure(Enum):
    """Whether a server of some release shows a family."""

    VISIBLE = "visible"
    HIDDEN = "hidden"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class EngineSpan:
    """Releases in which one engine generation has a family (or hides it)."""

    generation: Generation
    span: Span


@dataclass(frozen=True, slots=True)
class UnitSpan:
    """The unit of a family whose unit changed under the same name."""

    span: Span
    unit: str


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric family.

    Attributes:
        name: as in the server's code, e.g. ``vllm:num_preemptions``.
        type: counter, gauge, histogram, or info (0.3.3 to 0.5.4 only).
        samples: names as exposed.
        labels: label names; ``*`` stands for one label per cache-configuration field.
        engine_label_since: first V1 release with the `engine` label; None when the family always
            or never had it.
        unit: in the newest release; see `unit_in`.
        units: by release where it changed.
        ranges: where it exists; `hidden`: the part of that where it must be asked for.
        condition: what it needs to be exposed at all; None for nothing.
        renamed_to / renamed_since: the family with the same quantity, and its first release.
        renamed_from: the reverse.
        replaced_by: what to look at instead where no family carries the same quantity.
        meaning / notes: for people.
    """

    name: str
    type: MetricType
    samples: tuple[str, ...]
    labels: tuple[str, ...]
    engine_label_since: Version | None
    unit: str
    units: tuple[UnitSpan, ...]
    ranges: tuple[EngineSpan, ...]
    hidden: tuple[EngineSpan, ...]
    condition: str | None
    renamed_to: str | None
    renamed_since: Version | None
    renamed_from: tuple[str, ...]
    replaced_by: str | None
    meaning: str
    notes: str | None

    @property
    def first(self) -> Version:
        """The first release that has it under any engine."""
        return min(entry.span.first for entry in self.ranges)

    @property
    def last(self) -> Version:
        """The last release that has it under any engine."""
        return max(entry.span.last for entry in self.ranges)

    def exposure(self, release: Version, generation: Generation) -> Exposure:
        """Tell whether a server of this release and engine generation shows the family."""
        if not any(e.generation == generation and release in e.span for e in self.ranges):
            return Exposure.ABSENT
        if any(e.generation == generation and release in e.span for e in self.hidden):
            return Exposure.HIDDEN
        return Exposure.VISIBLE

    def unit_in(self, release: Version) -> str:
        """Return the unit of the values in one release."""
        return next((entry.unit for entry in self.units if release in entry.span), self.unit)

    def exposed_name(self) -> str:
        """Return the name a query on the family's value uses (the bare name for histograms)."""
        return (
            f"{self.name}_total"
            if self.type == "counter"
            else (self.name if self.type == "histogram" else self.samples[0])
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample name stands for: a family and the part of it."""

    family: MetricFamily
    role: Role


class _EngineRow(TypedDict):
    engine: Generation
    first: str
    last: str


class _UnitRow(TypedDict):
    first: str
    last: str
    unit: str


class _Row(TypedDict, total=False):
    name: str
    type: MetricType
    samples: list[str]
    labels: list[str]
    engine_label_since: str
    unit: str
    units: list[_UnitRow]
    ranges: list[_EngineRow]
    hidden: list[_EngineRow]
    condition: str
    renamed_to: str
    renamed_since: str
    renamed_from: list[str]
    replaced_by: str
    meaning: str
    notes: str


@cache
def families() -> dict[str, MetricFamily]:
    """Return all families by name, in the order of the file."""
    text = files("forensics.catalog").joinpath("metrics.toml").read_text(encoding="utf-8")
    rows = cast(list[_Row], tomllib.loads(text)["metric"])
    return {row["name"]: _family(row) for row in rows}


def family(name: str) -> MetricFamily | None:
    """Return a family by the name the code gives it, or None."""
    return families().get(name)


def sample(name: str) -> Sample | None:
    """Return what an exposed name stands for; None when no release exposes it.

    The bare name of a histogram (as native histograms and people write it) is not an exposed name.
    """
    return _samples().get(name)


@cache
def newest_release() -> Version:
    """Return the newest release the catalogue covers."""
    return max(entry.last for entry in families().values())


@cache
def _samples() -> dict[str, Sample]:
    # 0.3.3-0.5.4 and later define cache_config_info differently under one exposed name:
    # the later definition, which comes second in the file, is the one to keep.
    found: dict[str, Sample] = {}
    for entry in families().values():
        for name in entry.samples:
            found[name] = Sample(entry, _role(entry, name))
    found.update({name.replace(":", "_", 1): part for name, part in found.items()})
    return found


def _role(entry: MetricFamily, name: str) -> Role:
    suffix = name.removeprefix(entry.name).removeprefix("_")
    if entry.type in ("counter", "histogram") and suffix in (
        "total",
        "bucket",
        "sum",
        "count",
        "created",
    ):
        return cast(Role, suffix)
    return "info" if name.endswith("_info") else "value"


def _family(row: _Row) -> MetricFamily:
    return MetricFamily(
        name=row["name"],
        type=row["type"],
        samples=tuple(row["samples"]),
        labels=tuple(row["labels"]),
        engine_label_since=_optional(row.get("engine_label_since")),
        unit=row["unit"],
        units=tuple(
            UnitSpan(_span(u["first"], u["last"]), u["unit"]) for u in row.get("units", ())
        ),
        ranges=tuple(_engine_span(entry) for entry in row["ranges"]),
        hidden=tuple(_engine_span(entry) for entry in row.get("hidden", ())),
        condition=row.get("condition"),
        renamed_to=row.get("renamed_to"),
        renamed_since=_optional(row.get("renamed_since")),
        renamed_from=tuple(row.get("renamed_from", ())),
        replaced_by=row.get("replaced_by"),
        meaning=row["meaning"],
        notes=row.get("notes"),
    )


def _optional(text: str | None) -> Version | None:
    return None if text is None else version(text)


def _span(first: str, last: str) -> Span:
    return Span(version(first), version(last))


def _engine_span(row: _EngineRow) -> EngineSpan:
    return EngineSpan(row["engine"], _span(row["first"], row["last"]))
