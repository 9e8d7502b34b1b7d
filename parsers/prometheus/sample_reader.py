"""Reads the sample lines of a source: plain ones in bulk, the others one by one."""

import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.exposition_line import MILLISECONDS_FROM, Sample, read_line, read_name
from parsers.prometheus.labels import series_name
from parsers.prometheus.line_blocks import line_blocks
from parsers.prometheus.name_shapes import NameShapes
from parsers.prometheus.native_histograms import (
    NativeHistogram,
    classic_points,
    dumped_histogram,
)
from parsers.prometheus.rows import DROPPED, Floats, Keys, Rows
from parsers.prometheus.sample_lines import Indices, SampleLines, cut
from parsers.prometheus.scrape_time import moment_in
from parsers.prometheus.scrapes import Scrapes

_WORKERS = 2
"""Threads that cut blocks; more would only hold more text in memory."""

_UNREADABLE = -2
"""Key of a text in the place of a name that is no name."""

_NAME = re.compile(r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)(\s*\{)?")


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A block that is being cut: its text, where it starts and ends, and its lines to come."""

    block: bytes
    base: int
    end: int
    lines: Future[SampleLines]


class SampleReader:
    """The reading of one source.

    Attributes:
        rows: what was read so far.
    """

    def __init__(
        self, source: Source, options: ReadOptions, *, nan_ends_series: bool = False
    ) -> None:
        """Begin a reading.

        Args:
            source: what to read.
            options: which rows to keep.
            nan_ends_series: a NaN is no value but the mark that a series ended.
        """
        self.rows = Rows(source, options)
        self._nan_ends_series = nan_ends_series
        self._keys: dict[bytes, int] = {}
        self._shapes = NameShapes()
        self._untimed: list[tuple[Indices, Floats]] = []
        self._untimed_count = 0
        self._scrapes = Scrapes()
        self._timed = False
        self._zoneless = False
        self._histograms: dict[str, tuple[int, list[NativeHistogram]]] = {}

    def read(self, progress: Progress) -> None:
        """Read the whole source."""
        rows, source = self.rows, self.rows.source
        with source.open() as stream, ThreadPoolExecutor(_WORKERS) as pool:
            # Blocks are cut ahead in threads (numpy and polars let others run) and taken in order.
            ahead: deque[_Ahead] = deque()
            for block, base, end in line_blocks(stream, rows.damage):
                if not block:
                    rows.lines += 1
                    rows.bytes = end
                    continue
                ahead.append(_Ahead(block, base, end, pool.submit(cut, block)))
                if len(ahead) > _WORKERS:
                    self._take(ahead.popleft(), progress)
            while ahead:
                self._take(ahead.popleft(), progress)

    def finish(self, format_name: str) -> Parsed:
        """Give the samples without a timestamp the time of their scrape, and close the tables."""
        rows = self.rows
        for name, (offset, points) in self._histograms.items():
            self._add_histogram(name, offset, points)
        if self._untimed:
            keys = np.concatenate([part[0] for part in self._untimed])
            values = np.concatenate([part[1] for part in self._untimed])
            named = moment_in(rows.source.name)
            last = rows.source.mtime if named is None else named.stamp
            stamps, assumed = self._scrapes.stamps(keys, last)
            if self._zoneless or (not self._timed and named is not None and not named.zoned):
                rows.notes.append("scrape times without a zone were taken as UTC")
            if np.isnan(stamps[-1]):
                rows.clock = "none"
                rows.notes.append("nothing tells when it was scraped")
            elif assumed:
                rows.notes.append("some scrapes have no time: evenly spaced times were assumed")
            rows.add_points(keys.astype(np.uint32), stamps, values)
        return rows.finish(format_name)

    def _take(self, ahead: _Ahead, progress: Progress) -> None:
        """Take the lines of the next block."""
        rows = self.rows
        rows.bytes = max(rows.bytes, ahead.end)
        self._block(ahead.block, ahead.base, ahead.lines.result())
        progress(rows.source.path, ahead.end, rows.source.size or 0)

    def _block(self, block: bytes, base: int, found: SampleLines) -> None:
        """Read one block of whole lines, already cut."""
        rows = self.rows
        keys = self._keys_of(found, base)[found.name]
        readable = keys != _UNREADABLE
        singly = np.union1d(found.odd, found.lines[~readable])
        samples, borders = self._single_lines(block, base, found, singly)
        rows.lines += len(found.starts)
        rows.matched += int(readable.sum()) + len(samples)
        rows.ignored += found.silent + len(borders)
        lines, keys = found.lines[readable], keys[readable]
        values, stamps = found.value[readable], found.stamp[readable]
        if samples:
            lines = np.concatenate([lines, [line for line, _, _ in samples]])
            order = np.argsort(lines, kind="stable")
            lines = lines[order]
            keys = np.concatenate([keys, [key for _, key, _ in samples]])[order]
            values = np.concatenate([values, [one.value for _, _, one in samples]])[order]
            singly_stamped = [np.nan if one.stamp is None else one.stamp for _, _, one in samples]
            stamps = np.concatenate([stamps, singly_stamped])[order]
        if self._nan_ends_series:
            marks = np.isnan(values)
            rows.matched -= int(marks.sum())
            rows.ignored += int(marks.sum())
            lines, keys, values, stamps = (one[~marks] for one in (lines, keys, values, stamps))
        self._add(lines, keys, values, stamps, borders)

    def _keys_of(self, found: SampleLines, base: int) -> Indices:
        """Return the key of each distinct name of a block."""
        keys = [self._keys.get(name) for name in found.names]
        if None in keys:
            first = np.full(len(found.names), -1)
            first[found.name[::-1]] = np.arange(len(found.name))[::-1]
            for index, row in enumerate(first.tolist()):
                # A name without a row is only in lines that are read singly.
                if keys[index] is None and row >= 0:
                    offset = base + int(found.starts[found.lines[row]])
                    keys[index] = self._new_key(found.names[index], offset)
        return np.array([_UNREADABLE if key is None else key for key in keys], np.int64)

    def _new_key(self, name: bytes, offset: int) -> int:
        """Return the key of a name that was not seen before."""
        series = self._shapes.named(name.decode("utf-8", "replace"))
        key = _UNREADABLE if series is None else self.rows.key(series, offset)
        self._keys[name] = key
        return key

    def _single_lines(
        self, block: bytes, base: int, found: SampleLines, lines: Indices
    ) -> tuple[list[tuple[int, int, Sample]], list[tuple[int, float | None]]]:
        """Read lines one by one.

        Returns:
            Samples as (line, key, sample) and the starts of scrapes as (line, time).
        """
        rows = self.rows
        samples: list[tuple[int, int, Sample]] = []
        borders: list[tuple[int, float | None]] = []
        for line in lines.tolist():
            start = int(found.starts[line])
            text = block[start : int(found.ends[line])].decode("utf-8", "replace")
            sample = None if text.startswith("#") else read_line(text)
            if sample is not None:
                key = rows.key(series_name(sample.labels), base + start)
                samples.append((line, key, sample))
                continue
            histogram = dumped_histogram(text)
            if histogram is not None:
                rows.matched += 1
                name, point = histogram
                self._histograms.setdefault(name, (base + start, []))[1].append(point)
                continue
            moment = moment_in(text)
            if moment is not None:
                self._timed = True
                self._zoneless = self._zoneless or not moment.zoned
                borders.append((line, moment.stamp))
            elif text.rstrip() == "# EOF":
                borders.append((line, None))
            elif text.startswith("#") or not text.strip():
                rows.ignored += 1
            elif _is_broken_sample(text):
                rows.damage(base + start, "expected a name, labels and a value")
            else:
                rows.unknown += 1
        return samples, borders

    def _add_histogram(self, name: str, offset: int, points: list[NativeHistogram]) -> None:
        """Add a native histogram as a classic one."""
        named = read_name(name)
        if named is None:
            self.rows.damage(offset, "expected a name and labels before a native histogram")
            return
        labels = named[0]
        for suffix, edge, stamp, value in classic_points(points):
            edged = labels if edge is None else {**labels, "le": repr(edge)}
            key = self.rows.key(series_name(edged, labels["__name__"] + suffix), offset)
            self.rows.add(key, stamp, value)

    def _add(
        self,
        lines: Indices,
        keys: Indices,
        values: Floats,
        stamps: Floats,
        borders: list[tuple[int, float | None]],
    ) -> None:
        """Add the samples of a block, in the order of its lines."""
        rows = self.rows
        kept = keys != DROPPED
        rows.dropped_samples += int(len(keys) - kept.sum())
        untimed = kept & np.isnan(stamps)
        timed = kept & ~untimed
        if timed.any():
            rows.add_points(_uint(keys[timed]), _seconds(stamps[timed]), values[timed])
        at = np.searchsorted(lines[untimed], [line for line, _ in borders])
        for (_, stamp), index in zip(borders, at.tolist(), strict=True):
            self._scrapes.begin(self._untimed_count + index, stamp)
        if untimed.any():
            self._untimed.append((keys[untimed], values[untimed]))
            self._untimed_count += int(untimed.sum())


def _seconds(stamps: Floats) -> Floats:
    """Bring timestamps to seconds; see `exposition_line.seconds`."""
    return np.where(np.abs(stamps) >= MILLISECONDS_FROM, stamps / 1000, stamps)


def _uint(keys: npt.NDArray[np.int64]) -> Keys:
    """Narrow keys to the width they have in the tables."""
    return keys.astype(np.uint32)


def _is_broken_sample(text: str) -> bool:
    """Tell a damaged sample from a line that never was one (a prompt, a header, a progress bar)."""
    name = _NAME.match(text)
    return name is not None and (
        name[2] is not None or "_" in name[1] or ":" in name[1].removesuffix(":")
    )
