"""Reads the text exposition format, OpenMetrics and `/federate`: one scrape or many in a file."""

import re
from dataclasses import replace

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.sample_reader import SampleReader

_COMMENT = re.compile(rb"^# (?:HELP|TYPE|UNIT) [a-zA-Z_:\"]|^# EOF\s*$", re.MULTILINE)
_SAMPLE = re.compile(
    rb"^[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\n]*\})?[ \t]+(?:[-+]?[0-9.][0-9.eE+-]*|[+-]?Inf|NaN)"
    rb"(?:[ \t]+[0-9.]+)?[ \t]*\r?$",
    re.MULTILINE,
)
_NO_SAMPLES = (
    "it describes its metrics and holds not one sample: nothing had been served yet, or the server "
    "runs with --disable-log-stats"
)
_TELLING = (b"vllm", b"DCGM_", b"nv_", b"process_", b"http_re")


class Text:
    """Text exposition, OpenMetrics, federate, `promtool tsdb dump-openmetrics`."""

    name = "prometheus-text"

    def recognises(self, source: Source) -> bool:
        """Tell by comment lines together with sample lines, or by either alone.

        A server that has not answered anything yet, or runs without statistics, describes its
        metrics and has no sample.
        """
        head = source.head
        found = _SAMPLE.findall(head)
        samples = len(found)
        if _COMMENT.search(head):
            return samples > 0 or head.rstrip().endswith(b"# EOF") or _only_comments(head)
        lines = sum(1 for line in head.splitlines() if line.strip())
        telling = any(line.startswith(_TELLING) for line in found)
        return samples * (4 if telling else 2) > lines

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all scrapes of the source."""
        reader = SampleReader(source, options)
        reader.read(progress)
        parsed = reader.finish(self.name)
        bare = _only_comments(source.head) and b"vllm" in source.head
        if parsed.coverage.samples or parsed.damages or not bare:
            return parsed
        return replace(parsed, coverage=replace(parsed.coverage, note=_NO_SAMPLES))


def _only_comments(head: bytes) -> bool:
    lines = [line for line in head.splitlines() if line.strip()]
    return all(line.startswith(b"#") for line in lines)
