"""Lines of text that fit: wrapping, columns, sparklines and colour, by display width.

Hangul and other wide characters take two columns of a terminal, combining marks none.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_UNITS = frozenset(("ms", "s", "min", "h", "GiB", "MiB", "KiB"))
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.,-=+*#"


def width(text: str) -> int:
    """Count the terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Fill a text up to a number of columns."""
    fill = " " * max(0, columns - width(text))
    return fill + text if right else text + fill


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Break a text into lines of at most `columns`, words longer than a line cut hard.

    Args:
        text: without line breaks.
        columns: of the whole line, indentation included.
        first: what the first line begins with.
        rest: what the others begin with; as many blanks as `first` is wide when None.
    """
    rest = " " * width(first) if rest is None else rest
    lines: list[str] = []
    line, empty = first, True
    for word in _words(text):
        for piece in _pieces(word, max(8, columns - width(rest))):
            gap = "" if empty else " "
            if not empty and width(line) + width(gap) + width(piece) > columns:
                lines.append(line.rstrip())
                line, gap = rest, ""
            line, empty = line + gap + piece, False
    lines.append(line.rstrip())
    return lines


def _words(text: str) -> list[str]:
    """Split at blanks, a figure and its unit staying together."""
    words: list[str] = []
    for word in text.split():
        unit = word.startswith("%") or word.rstrip(".,;:)") in _UNITS
        if unit and words and words[-1][-1].isdigit():
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _pieces(word: str, columns: int) -> list[str]:
    pieces, piece, used = [], "", 0
    for char in word:
        wide = _columns(char)
        if used + wide > columns:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + wide
    return [*pieces, piece]


def cut(text: str, columns: int) -> str:
    """Shorten a text to a number of columns, an ellipsis telling that it was."""
    if width(text) <= columns:
        return text
    shown, used = "", 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        shown += char
    return shown + "…"


def sparkline(values: Sequence[float | None], *, top: float, ascii_only: bool = False) -> str:
    """Draw values as one character each, from 0 to `top`; a blank where nothing was observed.

    >>> sparkline([0.0, 0.5, None, 1.0], top=1.0)
    '▁▅ █'
    """
    signs = _ASCII if ascii_only else _BLOCKS
    last = len(signs) - 1
    scale = top if top > 0 else 1.0
    return "".join(
        " " if value is None else signs[round(min(1.0, max(0.0, value / scale)) * last)]
        for value in values
    )


def cells(
    times: Sequence[float], values: Sequence[float | None], span: tuple[float, float], count: int
) -> list[float | None]:
    """Put the points of a signal into `count` equal cells of an interval, the mean of each."""
    start, end = span
    length = (end - start) or 1.0
    sums, seen = [0.0] * count, [0] * count
    for time, value in zip(times, values, strict=True):
        if value is None or not start <= time <= end:
            continue
        at = min(count - 1, int((time - start) / length * count))
        sums[at] += value
        seen[at] += 1
    return [total / n if n else None for total, n in zip(sums, seen, strict=True)]


@dataclass(frozen=True, slots=True)
class Paint:
    """Colour for those who can see it; the words never depend on it."""

    on: bool

    def bold(self, text: str) -> str:
        """Set in bold."""
        return self._in("1", text)

    def dim(self, text: str) -> str:
        """Set in a lighter tone."""
        return self._in("2", text)

    def severity(self, severity: str, text: str) -> str:
        """Set in the colour of a severity."""
        return self._in({"critical": "1;31", "warning": "1;33"}.get(severity, "1;32"), text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text
