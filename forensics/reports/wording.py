"""The words of reports by language, and figures written in the unit people use for them.

Sentences stand in ``catalog/messages/<lang>/reports.toml``; nothing here knows a language.
"""

from forensics.analysis import Where
from forensics.catalog.messages import (
    Message,
    Value,
    catalogue,
    render,
    say_duration,
    say_number,
    say_utc,
)
from forensics.reports.plain import plain

# A date once is enough where both ends of an interval share it.
_DATE_LENGTH = len("2026-11-29 ")


def word(key: str, lang: str, **values: Value) -> str:
    """Say a fixed text of the reports, e.g. ``word("heading.verdict", "ko")``."""
    return render(Message(f"reports.{key}", values), lang)


def named(family: str, name: str, lang: str) -> str:
    """Give the readable name of an id (signal, part, role); an unnamed id stands for itself."""
    known = catalogue(lang).get(f"reports.{family}.{name}")
    return plain(name) if known is None else known


def figure(value: float | str | None, unit: str, lang: str) -> str:
    """Write a figure with its unit: 0.797 of "ratio" is "79.7 %", 4.4 of "s" is "4.4 s".

    None, which is "not observed", is a dash: never a zero.
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return plain(value)
    if unit == "ratio" or unit.startswith("share of"):
        return f"{value * 100:.1f} %"
    match unit:
        case "s":
            return say_duration(value)
        case "bytes":
            return size(value)
        case "utc":
            return say_utc(value)
        case "" | "text" | "count" | "event" | "setting":
            return say_number(value)
    return f"{say_number(value)} {named('unit', unit, lang)}"


def pair(
    before: float | str | None, after: float | str | None, unit: str, lang: str
) -> tuple[str, str]:
    """Write a figure on both sides, the unit once where both have it."""
    first, second = figure(before, unit, lang), figure(after, unit, lang)
    tail = f" {named('unit', unit, lang)}"
    if first.endswith(tail) and second.endswith(tail):
        first = first.removesuffix(tail)
    return first, second


def size(count: float) -> str:
    """Write bytes in binary units, as vLLM does."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1024
    return f"{count:,.2f} GiB"


def interval(span: tuple[float, float]) -> str:
    """Write an interval of UTC seconds, the date once when both ends share it."""
    start, end = say_utc(span[0]), say_utc(span[1])
    if start == end:
        return start
    if start[:_DATE_LENGTH] == end[:_DATE_LENGTH]:
        return f"{start[:-1]}–{end[_DATE_LENGTH:]}"
    return f"{start} – {end}"


def clock(seconds: float) -> str:
    """Write the time of day of UTC seconds."""
    return say_utc(seconds)[_DATE_LENGTH:]


def limits(value: float, low: float, high: float) -> str:
    """Write a limit on requests with its interval: whole requests, as they are set."""
    return f"{value:,.0f} ({low:,.0f}–{high:,.0f})"


def place(where: Where | None) -> str:
    """Write where a figure was read: file:line, or series @ time in file."""
    if where is None:
        return ""
    file = plain(where.file)
    if where.series is not None:
        at = "" if where.time is None else f" @ {clock(where.time)}"
        return f"{plain(where.series)}{at} ({file})"
    return file if where.line is None else f"{file}:{where.line}"
