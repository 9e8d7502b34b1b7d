"""Sentences for people, by key and language, so that one finding reads the same in every report.

A `Message` is a key and values; the sentence behind it stands in ``messages/<lang>.toml``.
Value formats beyond Python's own: ``{x:pct}`` (0.314 → 31.4 %), ``{x:num}`` (up to three
significant digits, thousands separated), ``{x:dur}`` (seconds → "40 ms", "12 s", "3 min"),
``{x:utc}`` (UTC seconds → "2026-11-29 17:33:05Z"). A missing value (None) renders as "unknown".
"""

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from forensics.errors import InternalError

LANGUAGES = ("en", "ko")
Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence to be said: `key` into the catalogue and the `values` it mentions."""

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)


@cache
def catalogue(lang: str) -> Mapping[str, str]:
    """Load all sentences of one language, flattened to dotted keys."""
    if lang not in LANGUAGES:
        raise InternalError(f"no message catalogue for language {lang!r}")
    flat: dict[str, str] = {}
    folder = files("forensics.catalog").joinpath("messages", lang)
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            _flatten("", tomllib.loads(entry.read_text(encoding="utf-8")), flat)
    return flat


def render(message: Message, lang: str = "en") -> str:
    """Say a message in a language; an unknown key is a broken promise of this product."""
    try:
        template = catalogue(lang)[message.key]
    except KeyError:
        raise InternalError(f"no sentence {message.key!r} in the {lang} catalogue") from None
    return _Formatter(lang).vformat(template, (), message.values)


def _flatten(prefix: str, table: Mapping[str, object], into: dict[str, str]) -> None:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _flatten(f"{name}.", value, into)
        else:
            into[name] = str(value)


def say_number(value: float) -> str:
    """Write a number with at most three significant digits and thousands separated."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def say_duration(seconds: float) -> str:
    """Write seconds in the unit people use for that size."""
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 120:
        return f"{seconds:.3g} s"
    if abs(seconds) < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def say_utc(seconds: float) -> str:
    """Write UTC seconds as a date and time a person can copy."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


class _Formatter(string.Formatter):
    def __init__(self, lang: str) -> None:
        self._unknown = {"en": "unknown", "ko": "알 수 없음"}[lang]

    def get_value(self, key: int | str, args: object, kwargs: Mapping[str, object]) -> object:
        return kwargs.get(str(key))

    def format_field(self, value: object, format_spec: str) -> str:
        if value is None:
            return self._unknown
        if isinstance(value, int | float):
            match format_spec:
                case "pct":
                    return f"{value * 100:.1f} %"
                case "num":
                    return say_number(value)
                case "dur":
                    return say_duration(value)
                case "utc":
                    return say_utc(value)
        return str(format(value, format_spec)) if format_spec not in _OWN else str(value)


_OWN = {"pct", "num", "dur", "utc"}
