"""Finds out which column of a table holds the time, the value, the name and the labels."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from parsers.prometheus.cells import stamp_of, value_of
from parsers.prometheus.known import is_known

_TIME_TITLES = ("time", "timestamp", "__timestamp__", "date", "datetime", "ts")
_VALUE_TITLES = re.compile(r"(?:__)?values?(?:__)?(?: ?#\w+)?\Z", re.IGNORECASE)
_SERIES_TITLES = ("series", "metric", "metric_name", "name", "field")
_ADDRESS = re.compile(r"[\w.-]+:[0-9]{2,5}\Z")
Test = Callable[[str], bool]
_MOSTLY = 0.8  # of the first rows; a dump may start with a damaged one


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns hold, by index.

    Attributes:
        delimiter: between cells.
        header: titles of the columns; empty when there are none.
        time: column of the time.
        value: column of the value in a long table; None when each other column is a series.
        series: column with the whole name of the series; None when labels name it.
        labels: columns that hold labels.
    """

    delimiter: str
    header: tuple[str, ...]
    time: int
    value: int | None = None
    series: int | None = None
    labels: dict[int, str] = field(default_factory=dict)


def layout_of(rows: Sequence[Sequence[str]], delimiter: str) -> Layout | None:
    """Tell the layout of a table from its first rows; None when it is no table of samples."""
    if not rows or len(rows[0]) < 2:
        return None
    titles = tuple(rows[0])
    lowered = [title.strip().lower() for title in titles]
    time = next((lowered.index(title) for title in _TIME_TITLES if title in lowered), None)
    if time is None:
        return _headless(rows, delimiter)
    body = rows[1:]
    if body and not _share(body, time, _is_time) >= _MOSTLY:
        return None
    value = next((i for i, title in enumerate(titles) if _VALUE_TITLES.match(title.strip())), None)
    if value is None or len(titles) == 2:
        return Layout(delimiter, titles, time)
    others = [index for index in range(len(titles)) if index not in (time, value)]
    series = next((i for i in others if lowered[i] in _SERIES_TITLES), None)
    labels = {index: titles[index].strip() for index in others if index != series}
    return Layout(delimiter, titles, time, value, series, labels)


def _headless(rows: Sequence[Sequence[str]], delimiter: str) -> Layout | None:
    """Tell the columns of a table without titles by what they hold."""
    columns = range(len(rows[0]))
    names = [c for c in columns if _share(rows, c, is_known) >= _MOSTLY]
    times = [c for c in columns if _share(rows, c, _is_time) >= _MOSTLY]
    numbers = [c for c in columns if c not in times and _share(rows, c, _is_value) >= _MOSTLY]
    if len(names) != 1 or not times or not numbers:
        return None
    time = times[0]
    # The usual order is name, value, time; a column that never changes is rather an engine.
    value = max(
        numbers, key=lambda c: (len({tuple(row[c : c + 1]) for row in rows}), c == time - 1)
    )
    labels = {names[0]: "__name__"}
    for column in columns:
        if column in (time, value, names[0]):
            continue
        labels[column] = _label(rows, column, numbers)
    return Layout(delimiter, (), time, value, None, labels)


def _label(rows: Sequence[Sequence[str]], column: int, numbers: Sequence[int]) -> str:
    """Guess the label of a column: the ones that name who speaks are worth it."""
    if any(len(row) > column and row[column] == "+Inf" for row in rows):
        return "le"
    if column in numbers and _share(rows, column, str.isdecimal) == 1:
        return "engine"
    if _share(rows, column, lambda cell: _ADDRESS.match(cell) is not None) >= _MOSTLY:
        return "instance"
    return f"column_{column + 1}"


def _share(rows: Sequence[Sequence[str]], column: int, test: Test) -> float:
    """Return the share of rows whose cell in a column passes a test."""
    return sum(len(row) > column and bool(test(row[column])) for row in rows) / len(rows)


def _is_time(cell: str) -> bool:
    return stamp_of(cell) is not None


def _is_value(cell: str) -> bool:
    try:
        return value_of(cell) is not None
    except ValueError:
        return False
