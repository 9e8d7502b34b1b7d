"""Bytes → evidence: what is read, by which format, into which tables.

`FORMATS` is the explicit list of formats, in the order they are asked; a source is read by the
first that recognises its content. Logs come last, because any text could be one.
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from forensics.errors import InputError
from forensics.evidence import (
    EVENTS,
    FACTS,
    SAMPLES,
    SERIES,
    Damage,
    Evidence,
    FileCoverage,
    SourceInfo,
    concat,
)
from parsers import prometheus
from parsers.interface import Format, Parsed, Progress, ReadOptions, Source
from parsers.rotation import in_content_order
from parsers.sources import discover
from parsers.unpacking import Found
from parsers.vllm_log.exports import LogExport
from parsers.vllm_log.format import VllmLog, is_text
from parsers.vllm_log.workers import Begun

FORMATS: tuple[Format, ...] = (LogExport(), *prometheus.FORMATS, VllmLog())


def silent(_path: str, _done: int, _total: int) -> None:
    """Report no progress."""


def read(
    paths: Sequence[str],
    options: ReadOptions | None = None,
    progress: Progress = silent,
    begun: Begun | None = None,
) -> Evidence:
    """Read everything behind the paths.

    Args:
        paths: files, directories, archives, ``-`` for standard input; any mix, any order.
        options: what the operator asked of the reading.
        progress: called now and then while long sources are read.
        begun: a log among them that worker processes read already.

    Raises:
        InputError: nothing at all could be read, or, when strict, something is damaged.
    """
    options = options or ReadOptions()
    found = in_content_order(list(discover(paths, options.max_decompressed_bytes)))
    formats = (*FORMATS[:-1], VllmLog(begun))
    parsed = [_parse(index, one, options, progress, formats) for index, one in enumerate(found)]
    if not any(one.coverage.format not in _NOT_READ for one in parsed):
        raise InputError(_nothing(paths, parsed))
    return _joined(found, parsed)


_NOT_READ = ("unreadable", "unrecognised")


def _nothing(paths: Sequence[str], parsed: Sequence[Parsed]) -> str:
    reasons = [one.coverage.note for one in parsed if one.coverage.note]
    if not parsed:
        return f"nothing to read in {', '.join(paths)}: no files there"
    return f"nothing could be read in {', '.join(paths)}: {'; '.join(reasons[:3])}"


def _parse(
    index: int,
    found: Found,
    options: ReadOptions,
    progress: Progress,
    formats: Sequence[Format],
) -> Parsed:
    if found.refusal is not None:
        return _refused(index, found, "unreadable", f"{found.path}: {found.refusal}")
    source = Source(
        index=index,
        path=found.path,
        name=found.name,
        mtime=found.mtime,
        head=found.head,
        open=found.open,
        local_path=found.local_path,
        size=found.size,
    )
    if not found.head:
        reason = "; ".join(found.cuts) or "empty file"
        return _refused(index, found, "unrecognised", f"{found.path}: {reason}")
    reader = next((one for one in formats if one.recognises(source)), None)
    if reader is None and found.named and is_text(source.head):
        reader = formats[-1]
    if reader is None:
        note = f"{found.path}: neither a vLLM log nor Prometheus metrics"
        return _refused(index, found, "unrecognised", note)
    try:
        parsed = reader.parse(source, options, progress)
    except OSError as error:
        note = f"{found.path}: reading failed: {error.strerror or type(error).__name__}"
        return _refused(index, found, "unreadable", note)
    if not found.cuts:
        return parsed
    note = f"{found.path}: {'; '.join(found.cuts)}"
    if options.strict:
        raise InputError(note, found.path)
    return replace(
        parsed,
        coverage=replace(parsed.coverage, note=parsed.coverage.note or note),
        damages=(*parsed.damages, Damage(index, parsed.coverage.bytes, found.cuts[0])),
    )


def _refused(index: int, found: Found, name: str, note: str) -> Parsed:
    return Parsed(coverage=FileCoverage(index, name, found.size or 0, note=note))


def _joined(found: Sequence[Found], parsed: Sequence[Parsed]) -> Evidence:
    series: list[pl.DataFrame] = []
    samples: list[pl.DataFrame] = []
    base = 0
    for one in parsed:
        if one.series.height:
            shifted = (pl.col("series") + base).cast(pl.UInt32)
            series.append(one.series.with_columns(shifted))
            samples.append(one.samples.with_columns(shifted))
            base += one.series.select(pl.col("series").max()).item() + 1
    return Evidence(
        sources=tuple(
            SourceInfo(one.path, one.stream, one.origin, one.mtime, one.open) for one in found
        ),
        series=concat(series, SERIES),
        samples=concat(samples, SAMPLES),
        events=concat((one.events for one in parsed), EVENTS),
        facts=concat((one.facts for one in parsed), FACTS),
        coverage=tuple(one.coverage for one in parsed),
        damages=tuple(damage for one in parsed for damage in one.damages),
    )
