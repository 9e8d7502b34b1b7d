"""Analysis → a postmortem in Markdown (GitHub, GitLab), with charts as SVG files beside it.

Sections of ours stand between marks and are renewed when the report is made again; the fields that
only a person can fill stand outside of them, and what a person wrote there stays (see `regions`).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from forensics.analysis import Analysis
from forensics.reports import charts, drawing, selection, timeline_chart, views
from forensics.reports.chronicle import happenings
from forensics.reports.drawing import Spec
from forensics.reports.folders import shared_folder, without_folder
from forensics.reports.regions import renewed
from forensics.reports.templating import environment
from forensics.reports.wording import word


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as the template places it."""

    alt: str
    link: str


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown text and the SVG files it shows, by file name."""

    text: str
    charts: Mapping[str, str] = field(default_factory=dict)


def render(
    analysis: Analysis,
    *,
    lang: str = "en",
    beside: str | None = None,
    embed: bool = False,
    written: str | None = None,
) -> Page:
    """Write the postmortem.

    Args:
        analysis: what to write.
        lang: "en" or "ko".
        beside: how the names of the chart files begin; None for no files.
        embed: put the charts into the text as data instead.
        written: what the file holds now, to keep what a person wrote.

    Raises:
        UsageError: `written` is not a report of ours, or its marks are broken.
    """
    folder = shared_folder(analysis)
    analysis = without_folder(analysis)
    drawn = _drawings(analysis, lang) if embed or beside is not None else {}
    files: dict[str, str] = {}
    shown: dict[str, list[Chart]] = {"timeline": [], "parts": [], "bounds": []}
    for name, (alt, spec) in drawn.items():
        svg = drawing.svg(spec, alt)
        if embed:
            link = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        else:
            files[f"{beside}-{name}.svg"] = svg
            link = quote(f"{beside}-{name}.svg")
        shown[name].append(Chart(alt, link))
    main = selection.main_finding(analysis)
    text = (
        environment(lang, html=False)
        .get_template("postmortem.md.j2")
        .render(
            verdict=analysis.verdict,
            main=main,
            carrying=selection.evidence_findings(analysis),
            folder=folder,
            others=[item for item in analysis.findings if item is not main],
            advice=selection.advice(analysis),
            window=analysis.window,
            impact_rows=views.impact(analysis, lang),
            happenings=happenings(analysis, lang),
            decompositions=analysis.decompositions,
            ceilings=[views.ceiling(item) for item in analysis.ceilings],
            files=analysis.files,
            clocks=analysis.clocks,
            not_evaluated=analysis.not_evaluated,
            reproduce=analysis.reproduce,
            tool_version=analysis.tool_version,
            charts=shown,
            no_chart=not drawn,
        )
    )
    return Page(text if written is None else renewed(text, written), files)


def _drawings(analysis: Analysis, lang: str) -> dict[str, tuple[str, Spec]]:
    made: dict[str, tuple[str, Spec]] = {}
    tracks, span = selection.main_tracks(analysis), analysis.focus
    if tracks is not None and span is not None:
        spec = timeline_chart.timeline(
            tracks, span, timeline_chart.lines_for(analysis, tracks.engine), lang
        )
        if spec is not None:
            start, end = span
            alt = word("postmortem.chart_alt", lang, engine=tracks.engine, start=start, end=end)
            made["timeline"] = (alt, spec)
    if analysis.decompositions:
        fall = analysis.decompositions[0]
        alt = word("html.parts_alt", lang, before=fall.before, after=fall.after)
        made["parts"] = (alt, charts.parts(fall, lang))
    first = next(iter(analysis.ceilings), None)
    spec = None if first is None else charts.bounds(first, lang)
    if first is not None and spec is not None:
        value = None if first.max_num_seqs is None else first.max_num_seqs.value
        alt = word("html.bounds_alt", lang, engine=first.engine, value=value)
        made["bounds"] = (alt, spec)
    return made
