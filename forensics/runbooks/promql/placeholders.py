"""Variables inside an expression replaced by something of the same length that parses.

Grafana (`$rate`, `${node:regex}`, `[[x]]`), Helm (`{{ .Values.window }}`) and people (`<window>`)
put variables into PromQL. Keeping the length keeps every place.
"""

import re
from dataclasses import dataclass

_VARIABLE = re.compile(
    r"\$\{[^}]*\}|\$[A-Za-z_]\w*|\[\[[^\[\]]*\]\]|\{\{[^}]*\}\}|<[A-Za-z][\w -]*>"
)
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_BEFORE_NUMBER = re.compile(
    r"(?:[<>=!]=?|(?:quantile|topk|bottomk|clamp_m\w\w)\w*\s*\()\s*(?:bool\s*)?$"
)
_BEFORE_OPERATOR = re.compile(r"[\w)\]}]\s*$")


@dataclass(frozen=True, slots=True)
class Filled:
    """An expression with its variables replaced.

    Attributes:
        text: of the same length as the original.
        spans: where variables stood.
    """

    text: str
    spans: tuple[tuple[int, int], ...]

    def touches(self, start: int, end: int) -> bool:
        """Tell whether a variable stood in these characters."""
        return any(low < end and start < high for low, high in self.spans)


def fill(text: str) -> Filled:
    """Replace the variables of an expression; inside strings they are left as they are."""
    if not any(mark in text for mark in ("$", "[[", "{{", "<")):
        return Filled(text, ())
    strings = [match.span() for match in _STRING.finditer(text)]
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = 0
    for match in _VARIABLE.finditer(text):
        start, end = match.span()
        if any(low < start < high for low, high in strings):
            spans.append((start, end))
            continue
        before = "".join(pieces) + text[done:start]
        pieces = [before, _stand_in(before, text[end:], end - start)]
        spans.append((start, end))
        done = end
    return Filled("".join(pieces) + text[done:], tuple(spans))


def _stand_in(before: str, after: str, length: int) -> str:
    in_brackets = before.rfind("[") > before.rfind("]")
    if in_brackets:
        unit = re.match(r"(?:ms|[smhdwy])(?!\w)", after)  # [${minutes}m]
        if unit:
            return "9".rjust(length, "0")
        return ("5m" if length > 1 else "9").rjust(length, "0")
    if _BEFORE_NUMBER.search(before):
        return "9".rjust(length, "1")
    if before and _BEFORE_OPERATOR.search(before) and before[-1] not in " \n\t":
        return "x" * length  # part of a longer name
    return "x" * length
