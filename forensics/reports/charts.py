"""Falls, bounds and sweeps → charts, as Vega-Lite specifications made with altair.

`drawing` turns them into SVG. No text from input is drawn: only names this product gives.
"""

from forensics.analysis import Decomposition
from forensics.ceiling.records import Ceiling, Sweep
from forensics.reports.chart_theme import WIDTH, finished, titled
from forensics.reports.drawing import Spec
from forensics.reports.palette import day
from forensics.reports.wording import named, word


def parts(found: Decomposition, lang: str) -> Spec:
    """Draw a fall as one stacked bar: what is left, and each part of what was lost."""
    import altair as alt

    colours = {"diversity": "second", "capacity": "bad", "cold": "hit", "counting": "third"}
    kept = word("label.after", lang)
    rows: list[dict[str, object]] = [{"p": kept, "v": max(found.after, 0.0), "o": 0}]
    ramp = {kept: day("line")}
    for order, part in enumerate(found.parts, start=1):
        if part.value <= 0:
            continue
        name = named("part", part.part, lang)
        rows.append({"p": name, "v": part.value, "o": order})
        ramp[name] = day(colours.get(part.part, "muted"))
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(height=26, stroke=day("paper"))
        .encode(
            x=alt.X("v:Q", stack=True, axis=alt.Axis(title=None, format="%")),
            order=alt.Order("o:Q"),
            color=alt.Color(
                "p:N",
                scale=alt.Scale(domain=list(ramp), range=list(ramp.values())),
                legend=alt.Legend(title=None, orient="bottom", direction="horizontal"),
            ),
        )
        .properties(width=WIDTH, height=34)
    )
    return finished(chart)


def bounds(found: Ceiling, lang: str) -> Spec | None:
    """Draw the bounds of a ceiling with their intervals; None when none was computed."""
    import altair as alt

    rows = [
        {
            "b": bound.name,
            "v": bound.value,
            "low": bound.value if bound.low is None else bound.low,
            "high": bound.value if bound.high is None else min(bound.high, 4 * bound.value + 1),
            "w": "hit" if bound.name == found.binding_bound else "muted",
        }
        for bound in found.bounds
        if bound.value is not None
    ]
    if not rows:
        return None
    names = [str(row["b"]) for row in rows]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("b:N", sort=names, axis=alt.Axis(title=None, minExtent=90)),
        color=alt.Color(
            "w:N",
            scale=alt.Scale(domain=["hit", "muted"], range=[day("hit"), day("muted")]),
            legend=None,
        ),
    )
    x = alt.X("low:Q", axis=alt.Axis(title=named("signal", "running", lang)))
    layers = [
        base.mark_rule(strokeWidth=5, opacity=0.45).encode(x=x, x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x="v:Q"),
        base.mark_text(align="left", dx=8, dy=-8).encode(
            x="v:Q", text=alt.Text("v:Q", format=",.0f")
        ),
    ]
    if found.current is not None:
        limit = alt.Chart(alt.InlineData(values=[{"v": found.current}]))
        layers.append(limit.mark_rule(strokeDash=[2, 2], color=day("ink")).encode(x="v:Q"))
    return finished(alt.layer(*layers).properties(width=WIDTH - 60, height=24 * len(rows) + 10))


def sweep(found: Sweep, lang: str) -> Spec:
    """Draw the hit rate, latency and throughput of a sweep against its setting."""
    import altair as alt

    charts = []
    for name, signal, colour, fmt in (
        ("hit_rate", "hit_rate", "hit", "%"),
        ("ttft_p50_s", "ttft_s", "second", "~s"),
        ("throughput_tok_s", "generation_tps", "usage", "~s"),
    ):
        rows = [{"x": row.setting, "v": getattr(row, name)} for row in found.rows]
        if all(row["v"] is None for row in rows):
            continue
        title = titled(signal, lang)
        charts.append(
            alt.Chart(alt.InlineData(values=rows), title=title)
            .mark_line(point=True, color=day(colour))
            .encode(
                x=alt.X("x:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(title=None)),
                y=alt.Y("v:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=None, format=fmt)),
            )
            .properties(width=190, height=130)
        )
    return finished(alt.hconcat(*charts, spacing=24))
