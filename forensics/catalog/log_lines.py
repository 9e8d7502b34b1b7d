"""The lines that vLLM servers print, by release, read from `log_lines.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypedDict, cast

from forensics.catalog.versions import Generation, Span, Version, version


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line.

    Attributes:
        kind: name of its family, e.g. ``stats_periodic``, ``preemption``.
        texts: the line with sample values in its places, in one or two wordings; no line prefix.
        levels: as printed, e.g. ``INFO``; ``EXCEPTION`` for the last line of a traceback.
        engines: the generations that print it.
        source: base name of the file that prints it; None when unknown.
        span: the releases that print it.
    """

    kind: str
    texts: tuple[str, ...]
    levels: tuple[str, ...]
    engines: tuple[Generation, ...]
    source: str | None
    span: Span

    def printed_by(self, release: Version, generation: Generation) -> bool:
        """Tell whether a server of this release and generation can print it."""
        return generation in self.engines and release in self.span


class _Row(TypedDict, total=False):
    kind: str
    text: str
    example: str
    level: str
    engine: str
    source: str
    first: str
    last: str


@cache
def log_lines() -> tuple[LogLine, ...]:
    """Return all lines, in the order of the file."""
    rows = cast(list[_Row], _file()["line"])
    return tuple(_line(row) for row in rows)


@cache
def circulating() -> tuple[str, ...]:
    """Return lines that articles and scripts show and no release prints."""
    rows = cast(list[_Row], _file()["circulating"])
    return tuple(row["text"] for row in rows)


@cache
def _file() -> dict[str, object]:
    text = files("forensics.catalog").joinpath("log_lines.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _line(row: _Row) -> LogLine:
    texts = (row["text"], row["example"]) if "example" in row else (row["text"],)
    return LogLine(
        kind=row["kind"],
        texts=texts,
        levels=tuple(row["level"].split("|")),
        engines=cast(tuple[Generation, ...], tuple(row["engine"].split("|"))),
        source=row.get("source"),
        span=Span(version(row["first"]), version(row["last"])),
    )
