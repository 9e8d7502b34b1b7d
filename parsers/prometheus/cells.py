"""Reads the cells of exported tables: times, values and names as dashboards print them."""

import re

from parsers.prometheus.exposition_line import read_name
from parsers.prometheus.scrape_time import moment_in

_DIGITS = re.compile(r"[0-9]{9,19}(?:\.[0-9]+)?\Z")
_VALUE = re.compile(r"([-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9]\S*)?\Z")
_FACTORS = {
    "%": 0.01,  # vLLM exposes fractions only, so a percentage is Grafana's dress for one
    "K": 1e3,
    "k": 1e3,
    "M": 1e6,
    "Mil": 1e6,
    "G": 1e9,
    "B": 1e9,
    "Bil": 1e9,
    "ns": 1e-9,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "mins": 60.0,
    "hour": 3600.0,
    "hours": 3600.0,
}
_WORDS = {"nan": float("nan"), "inf": float("inf"), "+inf": float("inf"), "-inf": float("-inf")}
_EMPTY = ("", "null", "undefined", "-", "No data")


def stamp_of(text: str) -> tuple[float, bool] | None:
    """Return (seconds, whether the zone is known) of a time cell; None when it is no time.

    Digits are seconds, milliseconds, microseconds or nanoseconds since 1970 by their number.

    Example:
        >>> stamp_of("1795973250000"), stamp_of("2026-11-29 17:27:30")
        ((1795973250.0, True), (1795973250.0, False))
    """
    text = text.strip()
    if _DIGITS.match(text):
        whole = len(text.partition(".")[0])
        number = float(text)
        for digits, factor in ((11, 1.0), (14, 1e3), (17, 1e6)):
            if whole < digits:
                return number / factor, True
        return number / 1e9, True
    moment = moment_in(text)
    return None if moment is None else (moment.stamp, moment.zoned)


def value_of(text: str) -> float | None:
    """Return the number in a cell, units resolved; None when the cell is empty.

    Raises:
        ValueError: the cell holds something else.

    Example:
        >>> value_of("1.5 K"), value_of("85%"), value_of("")
        (1500.0, 0.85, None)
    """
    text = text.strip()
    if text in _EMPTY:
        return None
    try:
        return float(text) if "_" not in text else _refuse(text)
    except ValueError:
        pass  # with a unit, thousands separators, or no number at all
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    match = _VALUE.match(text)
    if match is None:
        return _refuse(text)
    factor = 1.0 if match[2] is None else _FACTORS.get(match[2])
    return _refuse(text) if factor is None else float(match[1].replace(",", "")) * factor


def _refuse(text: str) -> float:
    raise ValueError("not a number")


def labels_of(text: str) -> dict[str, str]:
    """Return the labels in the title of a column: a series name, or a legend someone chose.

    A legend that is no series name becomes the name as it stands; the analysis does not know it.
    """
    text = text.strip()
    named = read_name(text)
    if named is not None and not text[named[1] :].strip():
        return named[0]
    braces = re.fullmatch(r"\{.*\}", text, re.DOTALL)
    if braces is not None:
        nameless = read_name("_" + text)
        if nameless is not None and nameless[1] == len(text) + 1:
            return {label: value for label, value in nameless[0].items() if label != "__name__"}
    return {"__name__": text}
