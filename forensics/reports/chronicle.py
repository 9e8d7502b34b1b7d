"""Analysis → what happened, in order of time: marks, episodes and onsets, as rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.analysis import Analysis, Where
from forensics.reports import selection
from forensics.reports.plain import plain
from forensics.reports.wording import named, word

# More marks of one kind than this are told as "first … last" by their count in the charts.
_MOST_MARKS = 40


@dataclass(frozen=True, slots=True)
class Happening:
    """One row: when, on which engine, what, and where it was read."""

    time: float
    engine: str
    text: str
    source: Where | None
    ours: bool = False
    """Whether it belongs to the incident itself."""


def happenings(analysis: Analysis, lang: str) -> Sequence[Happening]:
    """List what happened in order of time, the incident's own instants among it."""
    rows = [
        Happening(mark.time, tracks.engine, _marked(mark.kind, mark.text, lang), mark.source)
        for tracks in analysis.tracks
        for mark in tracks.marks[:_MOST_MARKS]
    ]
    for tracks in analysis.tracks:
        for start, end, signal in tracks.episodes:
            name = named("signal", signal, lang)
            begun = word("postmortem.episode_start", lang, signal=name)
            over = word("postmortem.episode_end", lang, signal=name)
            rows.append(Happening(start, tracks.engine, begun, None, ours=True))
            rows.append(Happening(end, tracks.engine, over, None, ours=True))
    for finding in selection.shown_findings(analysis):
        if finding.onset is None:
            continue
        source = next((item.source for item in finding.exhibits if item.source), None)
        for at, key, where in ((0, "onset_start", None), (1, "onset_end", source)):
            text = word(f"postmortem.{key}", lang, cause=finding.cause)
            rows.append(Happening(finding.onset[at], finding.engine, text, where, ours=True))
    return sorted(rows, key=lambda row: (row.time, row.engine, row.text))


def _marked(kind: str, text: str, lang: str) -> str:
    name = named("event", kind, lang)
    return name if not text or text == kind or plain(text) == name else f"{name}: {plain(text)}"
