"""Analysis → one HTML file for a ticket or a mail: no outside request, whole without scripts.

Still charts are inline SVG in CSS variables, so the page has a day and a night; where scripts run,
one bundled Vega draws interactive timelines over them. A content security policy in the page names
the two scripts by hash and forbids everything else, so that text from input could not run even if
it were not escaped (Vega compiles its expressions, which needs ``unsafe-eval``).
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from markupsafe import Markup

from forensics.analysis import Analysis, Decomposition
from forensics.reports import charts, drawing, fleet, palette, selection, timeline_chart, views
from forensics.reports.chronicle import happenings
from forensics.reports.drawing import Spec
from forensics.reports.folders import shared_folder, without_folder
from forensics.reports.templating import environment
from forensics.reports.views import CeilingView
from forensics.reports.wording import word

# Each drawn engine adds about 0.2 MB for a week of points; the rest of a fleet is in one table.
_MOST_TIMELINES = 4
_MOST_CEILING_CHARTS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, what it shows in words, and its specification where it can be explored."""

    svg: Markup
    alt: str
    engine: str = ""
    live: Markup | None = None


@dataclass(frozen=True, slots=True)
class Scripts:
    """The two scripts of a page."""

    bundle: Markup
    start: Markup


def render(analysis: Analysis, *, lang: str = "en", interactive: bool = True) -> str:
    """Write the page.

    Args:
        analysis: what to write.
        lang: "en" or "ko".
        interactive: put in what zooming and hovering need (0.9 MB).
    """
    folder = shared_folder(analysis)
    analysis = without_folder(analysis)
    timelines = _timelines(analysis, lang, interactive=interactive)
    scripts = _scripts() if interactive and timelines else None
    main = selection.main_finding(analysis)
    epochs = [epoch for engine in analysis.engines for epoch in engine.epochs]
    context = {
        "verdict": analysis.verdict,
        "main": main,
        "severity": selection.worst_severity(analysis) if main else "info",
        "window": analysis.window,
        "engines": analysis.engines,
        "advice": selection.advice(analysis),
        "timelines": timelines,
        "happenings": happenings(analysis, lang),
        "falls": [(item, _fall(item, at, lang)) for at, item in enumerate(analysis.decompositions)],
        "evidence": _evidence(analysis),
        "impact_rows": views.impact(analysis, lang),
        "ceilings": _ceilings(analysis, lang),
        "sweep": analysis.sweep,
        "sweep_chart": _sweep(analysis, lang),
        "fleet": fleet.rows(analysis),
        "files": analysis.files,
        "folder": folder,
        "clocks": analysis.clocks,
        "not_evaluated": views.not_evaluated(analysis),
        "weighed": analysis.weighed,
        "reproduce": analysis.reproduce,
        "tool_version": analysis.tool_version,
        "versions": dict.fromkeys(e.vllm_version for e in epochs if e.vllm_version),
        "style": Markup(palette.css() + _asset("report.css")),
        "scripts": scripts,
        "roles": _data({role: colour.day for role, colour in palette.COLOURS.items()}),
        "policy": _policy(scripts),
    }
    shown = {**context, "contents": _contents(context)}
    return environment(lang, html=True).get_template("report.html.j2").render(shown)


def _contents(context: Mapping[str, object]) -> Sequence[str]:
    """Name the sections that have something to say, in their order."""
    wanted = (
        ("now", context["advice"]),
        ("timeline", context["timelines"] or context["happenings"]),
        ("parts", context["falls"]),
        ("evidence", context["evidence"]),
        ("impact", context["impact_rows"]),
        ("ceiling", context["ceilings"]),
        ("sweep", context["sweep"]),
        ("engines", context["fleet"]),
        ("coverage", True),
    )
    return [key for key, something in wanted if something]


def _evidence(analysis: Analysis) -> Sequence[object]:
    shown = selection.shown_findings(analysis)
    return [*shown, *(item for item in analysis.findings if item not in shown)]


def _timelines(analysis: Analysis, lang: str, *, interactive: bool) -> list[Figure]:
    span, whole = analysis.focus, analysis.watched
    if span is None or whole is None:
        return []
    made: list[Figure] = []
    for tracks in fleet.drawn(analysis, _MOST_TIMELINES):
        lines = timeline_chart.lines_for(analysis, tracks.engine)
        still = timeline_chart.timeline(tracks, span, lines, lang)
        if still is None:
            continue
        start, end = span
        alt = word("postmortem.chart_alt", lang, engine=tracks.engine, start=start, end=end)
        live = None
        if interactive:
            spec = timeline_chart.timeline(tracks, span, lines, lang, whole=whole)
            live = None if spec is None else _data(spec)
        svg = _inline(still, alt, f"t{len(made)}-")
        made.append(Figure(svg, alt, tracks.engine, live))
    return made


def _fall(item: Decomposition, at: int, lang: str) -> Figure:
    alt = word("html.parts_alt", lang, before=item.before, after=item.after)
    return Figure(_inline(charts.parts(item, lang), alt, f"p{at}-"), alt)


def _ceilings(analysis: Analysis, lang: str) -> list[tuple[CeilingView, Figure | None]]:
    made: list[tuple[CeilingView, Figure | None]] = []
    for at, item in enumerate(analysis.ceilings):
        spec = charts.bounds(item, lang) if at < _MOST_CEILING_CHARTS else None
        figure = None
        if spec is not None:
            value = None if item.max_num_seqs is None else item.max_num_seqs.value
            alt = word("html.bounds_alt", lang, engine=item.engine, value=value)
            figure = Figure(_inline(spec, alt, f"b{at}-"), alt)
        made.append((views.ceiling(item), figure))
    return made


def _sweep(analysis: Analysis, lang: str) -> Figure | None:
    if analysis.sweep is None:
        return None
    alt = word("html.sweep_alt", lang, setting=analysis.sweep.setting_name)
    return Figure(_inline(charts.sweep(analysis.sweep, lang), alt, "s-"), alt)


def _inline(spec: Spec, alt: str, ids: str) -> Markup:
    return Markup(palette.with_variables(drawing.svg(spec, alt, ids)))


def _data(value: object) -> Markup:
    """Write JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def _scripts() -> Scripts:
    import vl_convert

    # The stub asks for a snippet, the function does not: without one it exports vegaEmbed.
    bundled = cast(Callable[[], str], vl_convert.javascript_bundle)()
    # A script element ends at the first "</script", also inside a string of the bundle.
    bundle = bundled.replace("</script", "<\\/script")
    return Scripts(Markup(bundle), Markup(_asset("report.js")))


def _policy(scripts: Scripts | None) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if scripts is None:
        return policy
    hashes = " ".join(f"'sha256-{_sha256(text)}'" for text in (scripts.bundle, scripts.start))
    return f"{policy}; script-src 'unsafe-eval' {hashes}"


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return files("forensics.reports").joinpath("templates", name).read_text(encoding="utf-8")
