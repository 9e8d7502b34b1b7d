"""What reading lines yields before it becomes tables: records, counts, marks and tallies.

All are plain and small, so that parts of one file can be read by several processes and put together
in the order of their offsets.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.interface import Fact

MAX_SHAPES = 2000
MAX_DAMAGES = 50


class Place(NamedTuple):
    """Where and when a line was printed, and by whom.

    `stamp` is the server's own, carried from the last stamped line of the instance where the line
    has none; None when nothing before it in this part of the file is stamped.
    """

    offset: int
    clock: str
    stamp: float | None
    outer: float | None
    instance: str | None
    engine: str | None
    process: str | None


class Record(NamedTuple):
    """One event: `fields` is compact JSON."""

    place: Place
    kind: str
    fields: str


class Statement(NamedTuple):
    """One fact and where it was stated."""

    place: Place
    fact: Fact


class Tally(NamedTuple):
    """Lines that are counted, not kept: `label` is a status or a request step."""

    offset: int
    clock: str
    stamp: float | None
    outer: float | None
    instance: str | None
    label: str
    detail: str
    lines: int


class Mark(NamedTuple):
    """A line of a traceback: its opening (`error` is None) or its last line."""

    place: Place
    error: str | None


class Counted(NamedTuple):
    """Lines of one chunk that are only counted, in columns.

    `codes` are those of `bulk.label_of`; `clocks` index `CLOCKS`, `instances` `Part.instances`; a
    NaN stamp is an unknown one.
    """

    offsets: npt.NDArray[np.int64]
    clocks: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.float64]
    outers: npt.NDArray[np.float64]
    instances: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]


class Plain(NamedTuple):
    """Events of lines of one chunk that were read in bulk, in columns.

    `whos` index `Part.whos`; `text` holds their fields one behind the other.
    """

    offsets: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.float64]
    outers: npt.NDArray[np.float64]
    whos: npt.NDArray[np.int64]
    text: bytes
    lengths: npt.NDArray[np.int64]


class Who(NamedTuple):
    """What many events have in common; see EVENTS."""

    clock: str
    instance: str | None
    engine: str | None
    process: str | None
    kind: str


@dataclass(slots=True)
class Part:
    """What one stretch of a source yielded.

    Attributes:
        records / statements / tallies / marks / counted: in the order of their offsets.
        plain: events of the lines that are read in bulk.
        whos: numbers of what they have in common.
        instances: numbers of instances that `counted` refers to.
        counts_requests: request steps are counted, those of `records` too.
        first / last: per instance, clock and stamp of the first and last stamped line.
        lines, matched, ignored, unknown, damaged: physical lines; the last four add up.
        matched_bytes, ignored_bytes, unknown_bytes, damaged_bytes: of those lines, with line feeds.
        shapes: unknown line shapes with their counts, digits masked.
        damages: the first few damaged places, as (offset, reason).
    """

    records: list[Record] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    plain: list[Plain] = field(default_factory=list)
    whos: dict[Who, int] = field(default_factory=dict)
    instances: dict[str | None, int] = field(default_factory=lambda: {None: 0})
    counts_requests: bool = False
    first: dict[str | None, tuple[str, float]] = field(default_factory=dict)
    last: dict[str | None, tuple[str, float]] = field(default_factory=dict)
    lines: int = 0
    matched: int = 0
    ignored: int = 0
    unknown: int = 0
    damaged: int = 0
    matched_bytes: int = 0
    ignored_bytes: int = 0
    unknown_bytes: int = 0
    damaged_bytes: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    damages: list[tuple[int, str]] = field(default_factory=list)

    def number(self, who: Who) -> int:
        """Return the number of a `Who`."""
        return self.whos.setdefault(who, len(self.whos))

    def instance(self, name: str | None) -> int:
        """Return the number of an instance."""
        return self.instances.setdefault(name, len(self.instances))

    def damage(self, offset: int, reason: str, size: int) -> None:
        """Count a damaged line of `size` bytes and keep its place among the first ones."""
        self.damaged += 1
        self.damaged_bytes += size
        if len(self.damages) < MAX_DAMAGES:
            self.damages.append((offset, reason))
