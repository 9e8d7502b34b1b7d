"""The page that the terminal report is written on: columns, language, headings, labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.reports.layout import Paint, cut, pad, width, wrap
from forensics.reports.plain import plain
from forensics.reports.wording import word

LABEL = 24
FIGURE = 10


@dataclass(frozen=True, slots=True)
class Page:
    """Where the lines go: columns, language, colour, glyphs, detail, the folder said once."""

    width: int
    lang: str
    paint: Paint
    ascii_only: bool
    verbose: bool
    folder: str = ""

    def say(self, key: str, **values: float | int | str | None) -> str:
        """Say a fixed text in the language of the page."""
        return word(key, self.lang, **values)

    def title(self, key: str, extra: str = "") -> str:
        """Write a section's heading."""
        text = self.say(f"heading.{key}").upper()
        tail = f"  {cut(extra, self.width - width(text) - 2)}" if extra else ""
        return self.paint.bold(text) + self.paint.dim(tail)

    def wrapped(self, text: str, first: str = "  ", rest: str | None = None) -> list[str]:
        """Wrap a text to the page."""
        return wrap(text, self.width, first, rest)

    def engine(self, name: str) -> str:
        """Name an engine; nothing where there is but one without a name."""
        return self.say("label.engine", engine=plain(name)) if name else ""

    def field(self, label: str, text: str) -> list[str]:
        """Write a label and what belongs to it."""
        return self.wrapped(text, f"  {pad(label, LABEL - 8)} ")


def table(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Set rows in columns, the first to the left, the others to the right."""
    spaces = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        indent
        + "  ".join(pad(cell, spaces[at], right=at > 0) for at, cell in enumerate(row)).rstrip()
        for row in rows
    ]
