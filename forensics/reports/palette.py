"""The colours of charts: told apart with any colour vision, contrast AA for text, day and night.

Series colours are Okabe and Ito's (https://jfly.uni-koeln.de/color/). A chart is drawn in the day
colours; inside HTML each becomes a CSS variable, so that the page can change them at night.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """One role: its colour by day and by night."""

    day: str
    night: str


COLOURS: Mapping[str, Colour] = {
    "ink": Colour("#1b1f24", "#e6e8eb"),
    "muted": Colour("#57606b", "#a3acb8"),
    "line": Colour("#d9dde3", "#3a414b"),
    "paper": Colour("#fffffe", "#14171b"),
    "shade": Colour("#fde3d3", "#4a2a18"),
    "hit": Colour("#0072b2", "#56b4e9"),
    "bad": Colour("#c24e00", "#ff8f4d"),
    "usage": Colour("#00795a", "#2fc79c"),
    "second": Colour("#a6478a", "#e39ac6"),
    "third": Colour("#8a6100", "#e6ad2e"),
}


def day(role: str) -> str:
    """Give the colour of a role by day."""
    return COLOURS[role].day


def with_variables(svg: str) -> str:
    """Replace the day colours of a drawing by CSS variables named after their roles."""
    for role, colour in COLOURS.items():
        svg = svg.replace(f'"{colour.day}"', f'"var(--{role})"')
    return svg


def css() -> str:
    """Write the variables for a style sheet: day, night, and always day on paper."""
    days = "".join(f"--{role}:{colour.day};" for role, colour in COLOURS.items())
    nights = "".join(f"--{role}:{colour.night};" for role, colour in COLOURS.items())
    return (
        f":root{{{days}color-scheme:light dark}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{nights}}}}}\n"
        f"@media print{{:root{{{days}}}}}\n"
    )
