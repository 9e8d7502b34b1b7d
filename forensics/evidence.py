"""The tables that every parser fills and everything else reads: schemas and provenance.

Nothing but these tables leaves a parser. Names and values stand in them *as exposed*; what they
mean in which vLLM version is decided later, by the timeline, from the diary of that epoch.

`samples` is kept in two frames, because a dump repeats the same labels for each of its points:
`series` has one row per time series of one source, `samples` one row per point.

Stamps are float seconds since 1970-01-01 in the clock named beside them, one of `clocks.CLOCKS`:

* ``utc``: a clock that is UTC with its year known (Prometheus, a container runtime, RFC 3339);
* ``local``: full date, zone unknown (a custom formatter, syslog with a year);
* ``yearless``: neither year nor zone, as vLLM prints it; the stamp is reckoned as if in 1972;
* ``none``: no stamp at all; `stamp` is null.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

import polars as pl

from forensics.coverage import KindBytes

LARGEST_VALUE = 1e18
"""More than any series of vLLM reaches: a million tokens a second give 3e13 in a year."""

SERIES: dict[str, pl.DataType] = {
    "series": pl.UInt32(),  # key into samples, unique over all sources of one Evidence
    "source": pl.UInt32(),  # index into Evidence.sources
    "offset": pl.UInt64(),  # byte offset of the first sight of the series in its source
    "clock": pl.String(),  # one of CLOCKS
    "instance": pl.String(),  # instance / pod / host label as exposed; null when there is none
    "engine": pl.String(),  # data-parallel rank as decimal text without padding; null when absent
    "metric": pl.String(),  # sample name as exposed, e.g. vllm:prefix_cache_hits_total
    "labels": pl.String(),  # the remaining labels: compact JSON object, keys sorted
    "edge": pl.Float64(),  # `le` of a bucket or `quantile` of a summary; null otherwise
}
SAMPLES: dict[str, pl.DataType] = {
    "series": pl.UInt32(),
    "stamp": pl.Float64(),  # seconds since the epoch
    "value": pl.Float64(),
}
EVENTS: dict[str, pl.DataType] = {
    "source": pl.UInt32(),
    "offset": pl.UInt64(),  # byte offset of the line in the (decompressed) source
    "clock": pl.String(),  # of `stamp`
    "stamp": pl.Float64(),  # the server's own stamp; carried forward onto lines that have none
    "outer": pl.Float64(),  # the wrapper's stamp (UTC seconds), null when nothing stamps the line
    "instance": pl.String(),  # pod / container / host a wrapper names; null otherwise
    "engine": pl.String(),  # rank named by the line or its process prefix; null otherwise
    "process": pl.String(),  # e.g. "APIServer", "EngineCore", "Worker"; null otherwise
    "kind": pl.String(),  # name of the family of line, e.g. stats_periodic, preemption
    "fields": pl.String(),  # JSON object with typed values, names as in the pattern
}
FACTS: dict[str, pl.DataType] = {
    "source": pl.UInt32(),
    "offset": pl.UInt64(),
    "clock": pl.String(),
    "stamp": pl.Float64(),
    "outer": pl.Float64(),
    "instance": pl.String(),
    "engine": pl.String(),
    "key": pl.String(),  # dotted, e.g. vllm.version, flag.max_num_seqs, pool.num_gpu_blocks
    "value": pl.String(),  # plain text as stated
}


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where rows came from.

    Attributes:
        path: as shown to the operator; members of archives as ``logs.tar!server.log``.
        stream: the rotated set or recording this file belongs to; files of one stream are one log.
        origin: what the operator named on the command line that led here.
        mtime: UTC seconds of last modification; None when unknown (standard input).
        open: opens the decompressed bytes again, to show a line; None when they are gone.
    """

    path: str
    stream: str
    origin: str
    mtime: float | None = None
    open: Callable[[], BinaryIO] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a figure was read: a line of a log, or a series at a time.

    Attributes:
        source: index into `Evidence.sources`.
        offset: byte offset of the log line (or of the series in its document).
        series: exposed name with the labels that matter, for figures from metrics; None for logs.
        time: UTC seconds of the sample, for figures from metrics.
    """

    source: int
    offset: int | None = None
    series: str | None = None
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """A place that could not be understood, counted and kept.

    Attributes:
        source: index into `Evidence.sources`.
        offset: byte offset of the place.
        reason: what was expected and what was found, in a few words, without input text.
    """

    source: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """How much of one source was understood.

    Attributes:
        source: index into `Evidence.sources`.
        format: name of the format that read it; ``unreadable`` or ``unrecognised`` when none did.
        bytes: size after decompression.
        lines: physical lines, or 0 for documents that are not lines.
        matched: lines that gave rows; `ignored`: known and carrying nothing; `unknown`: no pattern
            takes them; `damaged`: broken content.
        kind_bytes: the bytes of those lines; None for documents and metrics.
        samples: points of time series.
        unknown_shapes: most frequent unknown line shapes (digits masked) with their counts.
        note: one sentence for the operator when something is to be said about this file.
    """

    source: int
    format: str
    bytes: int
    lines: int = 0
    matched: int = 0
    ignored: int = 0
    unknown: int = 0
    damaged: int = 0
    kind_bytes: KindBytes | None = None
    samples: int = 0
    unknown_shapes: tuple[tuple[str, int], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All rows of one analysis. Frames have exactly the schemas SERIES, SAMPLES, EVENTS, FACTS."""

    sources: tuple[SourceInfo, ...]
    series: pl.DataFrame
    samples: pl.DataFrame
    events: pl.DataFrame
    facts: pl.DataFrame
    coverage: tuple[FileCoverage, ...] = ()
    damages: tuple[Damage, ...] = field(default=())


def empty_series() -> pl.DataFrame:
    """Return a series frame without rows."""
    return pl.DataFrame(schema=SERIES)


def empty_samples() -> pl.DataFrame:
    """Return a samples frame without rows."""
    return pl.DataFrame(schema=SAMPLES)


def empty_events() -> pl.DataFrame:
    """Return an events frame without rows."""
    return pl.DataFrame(schema=EVENTS)


def empty_facts() -> pl.DataFrame:
    """Return a facts frame without rows."""
    return pl.DataFrame(schema=FACTS)


def concat(frames: Iterable[pl.DataFrame], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """Stack frames of one schema; none at all gives an empty frame of that schema."""
    rows = [frame for frame in frames if frame.height]
    return pl.concat(rows) if rows else pl.DataFrame(schema=schema)
