r"""Reads one line of the text exposition format or of OpenMetrics.

``name{label="value",…} value [timestamp]``; OpenMetrics writes the timestamp in seconds and may add
an exemplar behind ``#``; Prometheus writes milliseconds. Since Prometheus 3 a name may be quoted
inside the braces. This is the reference that the bulk reader of `text` must agree with.
"""

import re
from dataclasses import dataclass

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_PAIR = re.compile(
    r'\s*(?:(?P<label>[a-zA-Z_:][a-zA-Z0-9_:.]*|"(?:[^"\\]++|\\.)*+")\s*=\s*)?'
    r'"(?P<value>(?:[^"\\]++|\\.)*+)"\s*(?:(?P<comma>,)\s*)?',
    re.DOTALL,
)
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_REST = re.compile(
    rf"\s*(?P<value>{_NUMBER}|[-+]?(?:[Ii][Nn][Ff](?:inity)?)|[Nn][Aa][Nn])"
    rf"(?:\s+(?P<stamp>{_NUMBER}))?\s*(?P<exemplar>#\s*\{{.*)?\Z",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
MILLISECONDS_FROM = 1e11
"""A larger timestamp is in milliseconds: as seconds it would lie after the year 5138."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample line. `stamp` is in UTC seconds; None when the line has none."""

    labels: dict[str, str]
    value: float
    stamp: float | None


def read_line(line: str) -> Sample | None:
    """Read a sample line; None when it is none.

    Example:
        >>> read_line('up{job="vllm"} 1 1795973250500').stamp
        1795973250.5
    """
    named = read_name(line)
    if named is None:
        return None
    labels, end = named
    rest = _REST.match(line, end)
    if rest is None or not (line[end - 1] == "}" or line[end : end + 1].isspace()):
        return None
    stamp = rest["stamp"]
    return Sample(labels, float(rest["value"]), None if stamp is None else seconds(float(stamp)))


def read_name(text: str) -> tuple[dict[str, str], int] | None:
    """Read the name and labels that a sample line starts with, and where they end."""
    start = len(text) - len(text.lstrip())
    name = _NAME.match(text, start)
    labels: dict[str, str] = {}
    position = start
    if name is not None:
        labels["__name__"] = name[0]
        position = name.end()
    opening = re.compile(r"\s*\{\s*").match(text, position)
    if opening is None:
        return (labels, position) if name is not None else None
    position = opening.end()
    if text.startswith("}", position):
        return (labels, position + 1) if name is not None else None
    while True:
        pair = _PAIR.match(text, position)
        if pair is None:
            return None
        value = _unescape(pair["value"])
        label = pair["label"]
        if label is None:
            if "__name__" in labels:
                return None
            labels["__name__"] = value
        else:
            label = _unescape(label[1:-1]) if label.startswith('"') else label
            if label in labels and label != "__name__":
                return None
            labels[label] = value
        position = pair.end()
        if text.startswith("}", position):
            position += 1
            break
        if pair["comma"] is None:
            return None
    return (labels, position) if "__name__" in labels else None


def seconds(stamp: float) -> float:
    """Bring a timestamp of either format to seconds."""
    return stamp / 1000 if abs(stamp) >= MILLISECONDS_FROM else stamp


def _unescape(text: str) -> str:
    r"""Resolve ``\\``, ``\"`` and ``\n``; any other backslash stands for itself."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(
        lambda found: {"n": "\n", '"': '"', "\\": "\\"}.get(found[1], found[0]), text
    )
