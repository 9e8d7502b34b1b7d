"""Reads the text exposition format, OpenMetrics and `/federate`: one scrape or many in a file."""

import re
from dataclasses import dataclass, field

import numpy as np

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.exposition_line import read_line
from parsers.prometheus.labels import series_name
from parsers.prometheus.rows import Rows
from parsers.prometheus.scrape_time import time_in
from parsers.prometheus.scrapes import Scrapes

_COMMENT = re.compile(rb"^# (?:HELP|TYPE|UNIT) [a-zA-Z_:\"]|^# EOF\s*$", re.MULTILINE)
_SAMPLE = re.compile(
    rb"^[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\n]*\})?[ \t]+(?:[-+]?[0-9.][0-9.eE+-]*|[+-]?Inf|NaN)"
    rb"(?:[ \t]+[0-9.]+)?[ \t]*\r?$",
    re.MULTILINE,
)


class Text:
    """Text exposition, OpenMetrics, federate, `promtool tsdb dump-openmetrics`."""

    name = "prometheus-text"

    def recognises(self, source: Source) -> bool:
        """Tell by comment lines together with sample lines, or by samples alone."""
        head = source.head
        samples = len(_SAMPLE.findall(head))
        if _COMMENT.search(head):
            return samples > 0 or head.rstrip().endswith(b"# EOF")
        lines = sum(1 for line in head.splitlines() if line.strip())
        return samples >= 1 and samples * 2 > lines

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all scrapes of the source."""
        reader = _Reader(Rows(source, options))
        with source.open() as stream:
            for line in stream:
                reader.line(line)
        reader.settle()
        return reader.rows.finish(self.name)


@dataclass(slots=True)
class _Reader:
    """What is known while the lines of one source go by."""

    rows: Rows
    scrapes: Scrapes = field(default_factory=Scrapes)
    keys: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    scrape: list[int] = field(default_factory=list)

    def line(self, raw: bytes) -> None:
        rows = self.rows
        offset = rows.bytes
        rows.bytes += len(raw)
        rows.lines += 1
        text = raw.decode("utf-8", "replace").strip("\r\n")
        if not text.strip():
            rows.ignored += 1
            return
        if text.startswith("#"):
            rows.ignored += 1
            if text.startswith("# EOF"):
                self.scrapes.end()
            elif not text.startswith(("# HELP", "# TYPE", "# UNIT")):
                self._time_line(text)
            return
        sample = read_line(text)
        if sample is None:
            if self._time_line(text):
                rows.ignored += 1
            else:
                rows.damage(offset, "expected a sample: name, labels, value")
            return
        rows.matched += 1
        key = rows.key(series_name(sample.labels), offset)
        if sample.stamp is not None:
            rows.add(key, sample.stamp, sample.value)
        elif key < 0:
            rows.dropped_samples += 1
        else:
            self.scrape.append(self.scrapes.saw(key))
            self.keys.append(key)
            self.values.append(sample.value)

    def _time_line(self, text: str) -> bool:
        stamp = time_in(text)
        if stamp is not None:
            self.scrapes.time_line(stamp)
        return stamp is not None

    def settle(self) -> None:
        """Give the samples without a stamp of their own the time of their scrape."""
        rows = self.rows
        if not self.keys:
            return
        last = time_in(rows.source.name)
        if last is None:
            last = rows.source.mtime
        times, assumed = self.scrapes.settled(last)
        if times[-1] is None:
            rows.clock = "none"
            rows.notes.append("nothing tells when it was scraped")
        elif assumed:
            rows.notes.append(
                "no line tells when some scrapes were taken: evenly spaced times were assumed"
            )
        stamps = np.array([np.nan if time is None else time for time in times])
        rows.add_points(np.array(self.keys, np.uint32), stamps[self.scrape], np.array(self.values))
