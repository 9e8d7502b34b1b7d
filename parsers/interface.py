"""What a format is: it recognises a source by its content and turns its bytes into rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

import polars as pl

from forensics.evidence import (
    Damage,
    FileCoverage,
    empty_events,
    empty_facts,
    empty_samples,
    empty_series,
)

Progress = Callable[[str, int, int], None]
"""Called with (path, bytes done, bytes in all; 0 when unknown)."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the operator asked of the reading.

    Attributes:
        strict: raise InputError on the first damage instead of counting it.
        known_series_only: keep only series that the product uses (saves memory on huge dumps).
        max_decompressed_bytes: a compressed source that unpacks to more is cut there, and said.
        since / until: keep samples within these UTC seconds; None for no bound.
    """

    strict: bool = False
    known_series_only: bool = True
    max_decompressed_bytes: int = 64 << 30
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of plain (already decompressed) bytes.

    Attributes:
        index: the `source` column of the rows made from it.
        path: as shown to the operator.
        name: base name without compression suffix; a hint (scrape time in the name), never proof.
        mtime: UTC seconds of last modification; None when unknown (stdin).
        head: the first 64 KiB, for recognition.
        open: opens the bytes from the start, decompressed.
        local_path: set when the bytes are a plain uncompressed file that may be memory-mapped.
        size: bytes if known.
    """

    index: int
    path: str
    name: str
    mtime: float | None
    head: bytes
    open: Callable[[], BinaryIO]
    local_path: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows of one source; its `series` keys are local, `parsers.read` makes them unique."""

    coverage: FileCoverage
    series: pl.DataFrame = field(default_factory=empty_series)
    samples: pl.DataFrame = field(default_factory=empty_samples)
    events: pl.DataFrame = field(default_factory=empty_events)
    facts: pl.DataFrame = field(default_factory=empty_facts)
    damages: tuple[Damage, ...] = ()


class Format(Protocol):
    """One kind of input; formats are asked in the order of `parsers.FORMATS`, the first reads."""

    name: str

    def recognises(self, source: Source) -> bool:
        """Tell by content whether this format reads the source. Never raises."""

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Turn the bytes into rows. Content never raises unless `options.strict`."""
