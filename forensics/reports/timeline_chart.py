"""One engine → its signals over one another on one clock, as a Vega-Lite specification.

Points from metrics are lines, points from the log are circles. Episodes are shaded, what happened
is a dashed mark. All times are UTC. No text from input is drawn: only names this product gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from forensics.analysis import Analysis, EngineTracks, MarkView, Track
from forensics.reports.chart_theme import WIDTH, finished, titled
from forensics.reports.drawing import Spec
from forensics.reports.palette import day
from forensics.reports.wording import named, word

if TYPE_CHECKING:
    import altair as alt

_PANEL = 84
_AXIS_LEFT = 54
# A mark up to this share of the chart's time beyond its ends is drawn (a crash after the last
# scrape); one farther off (a start-up line of days before) would shrink all else to a hair.
_BEYOND = 0.05


@dataclass(frozen=True, slots=True)
class _Series:
    signal: str
    colour: str
    shape: str = "line"


# From top to bottom; a panel without an observed signal is left out.
_PANELS: tuple[tuple[_Series, ...], ...] = (
    (
        _Series("hit_rate", "hit"),
        _Series("potential", "second"),
        _Series("logged_hit_rate", "third"),
    ),
    (_Series("preemptions", "bad", "bar"), _Series("preemption_lower_bound", "bad", "bar")),
    (_Series("kv_usage", "usage", "area"),),
    (_Series("running", "hit"), _Series("waiting", "bad")),
    (_Series("ttft_s", "second"),),
    (_Series("generation_tps", "usage"),),
)
_RATIOS = {"hit_rate", "kv_usage"}


@dataclass(frozen=True, slots=True)
class Lines:
    """Horizontal lines in the panel of running requests; None where there is none to draw."""

    recommended: float | None
    current: float | None


def lines_for(analysis: Analysis, engine: str) -> Lines:
    """Give the recommended limit of an engine and the one in force."""
    found = next((item for item in analysis.ceilings if item.engine in (engine, "")), None)
    if found is None:
        return Lines(None, None)
    limit = None if found.max_num_seqs is None else found.max_num_seqs.value
    return Lines(limit, None if found.current is None else float(found.current))


def timeline(
    tracks: EngineTracks,
    span: tuple[float, float],
    lines: Lines,
    lang: str,
    *,
    whole: tuple[float, float] | None = None,
) -> Spec | None:
    """Lay the signals of one engine over one another on one clock; None when there are none.

    Args:
        tracks: the engine.
        span: UTC seconds that are shown, at first.
        lines: limits to draw beside the running requests.
        lang: of the names.
        whole: UTC seconds of a strip below in which another span can be chosen; None for a still
            chart.
    """
    interactive = whole is not None
    import altair as alt

    panels = [
        observed
        for panel in _PANELS
        if (observed := [item for item in panel if _seen(tracks.signals.get(item.signal))])
    ]
    if not panels:
        return None
    near = replace(tracks, marks=_near(tracks.marks, whole or span))
    domain = [round(span[0] * 1000), round(span[1] * 1000)]
    brush = alt.selection_interval(encodings=["x"], name="zoom")
    if whole not in (None, span):
        brush = alt.selection_interval(encodings=["x"], name="zoom", value={"x": domain})
    charts: list[alt.Chart | alt.LayerChart] = []
    for at, panel in enumerate(panels):
        last = at == len(panels) - 1
        scale = alt.Scale(type="utc", domain=brush if interactive else domain, nice=False)
        axis = alt.Axis(
            title=None, labels=last, ticks=last, grid=True, tickCount=8, labelExpr=_clock(span)
        )
        x = alt.X("t:T", scale=scale, axis=axis)
        charts.append(_panel(near, panel, x, lines, lang, interactive=interactive))
    drawn = alt.vconcat(*charts, spacing=6).resolve_scale(color="independent", x="shared")
    if whole is not None:
        overview = _overview(tracks, panels[0][0], whole, brush)
        drawn = alt.vconcat(drawn, overview).resolve_scale(color="independent", x="independent")
    return finished(drawn)


def _near(marks: Sequence[MarkView], span: tuple[float, float]) -> tuple[MarkView, ...]:
    room = _BEYOND * (span[1] - span[0])
    return tuple(mark for mark in marks if span[0] - room <= mark.time <= span[1] + room)


def _clock(span: tuple[float, float]) -> str:
    """Give the expression that writes an instant as finely as the span asks for."""
    length = span[1] - span[0]
    written = "%H:%M:%S" if length < 3600 else "%H:%M" if length < 86_400 else "%m-%d %H:%M"
    return f"utcFormat(datum.value, '{written}')"


def _seen(track: Track | None) -> bool:
    return track is not None and any(value is not None for value in track.values)


def _rows(track: Track, name: str) -> list[dict[str, object]]:
    return [
        {"t": round(time * 1000), "v": value, "s": name}
        for time, value in zip(track.times, track.values, strict=True)
    ]


def _panel(
    tracks: EngineTracks,
    panel: Sequence[_Series],
    x: "alt.X",
    lines: Lines,
    lang: str,
    *,
    interactive: bool,
) -> "alt.LayerChart":
    import altair as alt

    first = panel[0].signal
    names = [named("signal", item.signal, lang) for item in panel]
    ratio = first in _RATIOS
    scale = alt.Scale(domain=[0, 1]) if ratio else alt.Scale(domainMin=0, nice=True)
    axis = alt.Axis(
        title=None,
        format="%" if ratio else "~s",
        tickCount=3,
        minExtent=_AXIS_LEFT,
        maxExtent=_AXIS_LEFT,
    )
    y = alt.Y("v:Q", scale=scale, axis=axis)
    legend = alt.Legend(title=None, orient="top", direction="horizontal", offset=0)
    colour = alt.Color(
        "s:N",
        scale=alt.Scale(domain=names, range=[day(item.colour) for item in panel]),
        legend=legend if len(names) > 1 else None,
    )
    layers: list[alt.Chart] = [*_episodes(tracks, x), *_marks(tracks, x)]
    for item, name in zip(panel, names, strict=True):
        track = tracks.signals[item.signal]
        layers.append(_drawn(track, item, name, x, y, colour, interactive=interactive))
    if first in ("running", "waiting"):
        layers += _limits(lines, lang)
    title = titled(first, lang) if len(names) == 1 else ""
    made = alt.layer(*layers).properties(width=WIDTH, height=_PANEL, title=title)
    return cast("alt.LayerChart", made)


def _drawn(
    track: Track,
    item: _Series,
    name: str,
    x: "alt.X",
    y: "alt.Y",
    colour: "alt.Color",
    *,
    interactive: bool,
) -> "alt.Chart":
    import altair as alt

    chart = alt.Chart(alt.InlineData(values=_rows(track, name)))
    if item.shape == "bar":
        made = chart.mark_bar(width=3, clip=True)
    elif item.shape == "area":
        made = chart.mark_area(opacity=0.35, line={"strokeWidth": 1.6}, clip=True)
    elif track.clock == "log":
        made = chart.mark_point(size=22, filled=False, clip=True)
    else:
        made = chart.mark_line(strokeWidth=1.6, clip=True, point=_lonely(track))
    made = made.encode(x=x, y=y, color=colour)
    if interactive:
        made = made.transform_calculate(at="utcFormat(datum.t, '%Y-%m-%d %H:%M:%SZ')").encode(
            tooltip=[
                alt.Tooltip("s:N", title=" "),
                alt.Tooltip("at:N", title="UTC"),
                alt.Tooltip("v:Q", title="=", format=".4~g"),
            ]
        )
    return cast("alt.Chart", made)


def _lonely(track: Track) -> bool:
    """Tell whether points stand alone between gaps, where a line would show nothing."""
    values = (None, *track.values, None)
    return any(
        values[at] is not None and values[at - 1] is None and values[at + 1] is None
        for at in range(1, len(values) - 1)
    )


def _episodes(tracks: EngineTracks, x: "alt.X") -> "list[alt.Chart]":
    import altair as alt

    rows = [{"t": round(start * 1000), "u": round(end * 1000)} for start, end, _ in tracks.episodes]
    if not rows:
        return []
    return [
        alt.Chart(alt.InlineData(values=rows))
        .mark_rect(color=day("shade"), opacity=0.55, clip=True)
        .encode(x=x, x2="u:T")
    ]


def _marks(tracks: EngineTracks, x: "alt.X") -> "list[alt.Chart]":
    import altair as alt

    rows = [{"t": round(mark.time * 1000)} for mark in tracks.marks]
    if not rows:
        return []
    return [
        alt.Chart(alt.InlineData(values=rows))
        .mark_rule(color=day("muted"), strokeDash=[3, 3], clip=True)
        .encode(x=x)
    ]


def _limits(lines: Lines, lang: str) -> "list[alt.Chart]":
    import altair as alt

    made: list[alt.Chart] = []
    for value, key, dash, colour in (
        (lines.recommended, "label.ceiling_line", [6, 3], "bad"),
        (lines.current, "label.limit_line", [2, 2], "muted"),
    ):
        if value is None:
            continue
        data = alt.InlineData(values=[{"v": value, "l": f"{word(key, lang)} {value:,.0f}"}])
        rule = alt.Chart(data).mark_rule(color=day(colour), strokeDash=dash).encode(y="v:Q")
        text = (
            alt.Chart(data)
            .mark_text(align="right", baseline="bottom", dx=-4, dy=-2, color=day(colour))
            .encode(y="v:Q", x=alt.value(WIDTH), text="l:N")
        )
        made += [rule, text]
    return made


def _overview(
    tracks: EngineTracks, item: _Series, whole: tuple[float, float], brush: "alt.Parameter"
) -> "alt.Chart":
    import altair as alt

    domain = [round(whole[0] * 1000), round(whole[1] * 1000)]
    x = alt.X(
        "t:T",
        scale=alt.Scale(type="utc", domain=domain),
        axis=alt.Axis(title=None, labelExpr=_clock(whole)),
    )
    y = alt.Y("v:Q", axis=alt.Axis(title=None, labels=False, ticks=False, minExtent=_AXIS_LEFT))
    made = (
        alt.Chart(alt.InlineData(values=_rows(tracks.signals[item.signal], "")))
        .mark_area(color=day("muted"), opacity=0.4)
        .encode(x=x, y=y)
        .properties(width=WIDTH, height=36)
        .add_params(brush)
    )
    return cast("alt.Chart", made)
