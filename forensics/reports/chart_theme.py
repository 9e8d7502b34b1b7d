"""What all charts look like: width, fonts, colours; and nothing repeated for screen readers."""

from typing import TYPE_CHECKING, cast

from forensics.reports.drawing import Spec
from forensics.reports.palette import day
from forensics.reports.wording import named

if TYPE_CHECKING:
    import altair as alt

WIDTH = 720


def finished(chart: "alt.TopLevelMixin") -> Spec:
    """Set fonts and colours, and leave out what would repeat every point for screen readers."""
    ink, muted, line = day("ink"), day("muted"), day("line")
    themed = (
        chart.configure(background=day("paper"), font="Arial, Helvetica, sans-serif", aria=False)
        .configure_view(stroke=line)
        .configure_axis(
            labelColor=muted,
            titleColor=ink,
            titleFontWeight="normal",
            gridColor=line,
            domainColor=muted,
            tickColor=muted,
        )
        .configure_legend(labelColor=ink)
        .configure_title(color=ink, fontWeight="normal", fontSize=11, anchor="start", offset=4)
    )
    return cast(Spec, themed.to_dict())


def titled(signal: str, lang: str) -> str:
    """Name a signal above its axis, with the unit that the axis does not show."""
    name = named("signal", signal, lang)
    return f"{name} (s)" if signal.endswith("_s") else name
