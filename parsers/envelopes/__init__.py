"""What wraps a log line: container runtimes, log shippers, terminals, people.

Wrappers nest (compose around docker's stamp, kubectl's prefix around CRI), so layers are taken off
one after another until none is left. To add a wrapper, write an `Envelope` and put it in the table
under the characters a line of it can begin with.
"""

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from parsers.envelopes.containers import compose, kubectl, stamped, stern
from parsers.envelopes.interface import Envelope, Layer
from parsers.envelopes.json_lines import json_object, tagged
from parsers.envelopes.pasted import markdown
from parsers.envelopes.syslog import bsd, ietf, journal

__all__ = ["Layer", "Unwrapped", "plain", "unwrap"]

MAX_LAYERS = 8

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][0-9A-B]")
_ANSI_LOST_ESCAPE = re.compile(r"\[(?:0|1|[039]\d?|1;3\d|0;3\d|0;0)m")
_PLAIN = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d |:  )|\s+\S|Traceback ")
_UNSEEN = {0x00A0: " ", 0x202F: " ", 0x200B: None, 0x2060: None, 0xFEFF: None}  # of web pages
_DIGITS = "0123456789"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_BY_START: dict[str, tuple[Envelope, ...]] = {
    "{": (json_object,),
    "[": (json_object, kubectl, tagged, journal),
    "<": (ietf, bsd),
    **dict.fromkeys(_DIGITS, (stamped, journal, markdown)),
    **dict.fromkeys(_LETTERS, (bsd, compose, stern, journal, tagged, markdown)),
    **dict.fromkeys(">*+`_~|•- \t", (markdown,)),
}


class Unwrapped(NamedTuple):
    """A line without its wrappers; see `Layer` for what they state."""

    body: str
    outer: float | None = None
    instance: str | None = None
    own: tuple[str, float] | None = None
    partial: bool = False
    stream: str | None = None

    @property
    def cut_from(self) -> tuple[str | None, str | None]:
        """Whose line a runtime cut: streams of a container are cut each for itself."""
        return self.instance, self.stream


def unwrap(
    text: str, cut: Container[tuple[str | None, str | None]] = (), around: Layer | None = None
) -> Iterator[Unwrapped]:
    """Yield the lines inside a physical line: one, or those of a multi-line message.

    Args:
        text: the physical line.
        cut: instances and streams whose last line a runtime cut; their next one goes on in its
            middle, so no further wrapper is looked for in it.
        around: what was already taken off, where the line comes out of a document.
    """
    if not text.isascii():
        text = text.translate(_UNSEEN)
    found = Unwrapped(plain(text))
    if around is not None:
        found = found._replace(outer=around.outer, instance=around.instance, own=around.own)
    for _ in range(MAX_LAYERS):
        layer = _outermost(found.body)
        if layer is None:
            break
        found = Unwrapped(
            layer.body if layer.partial else plain(layer.body),
            layer.outer if found.outer is None else found.outer,
            layer.instance if found.instance is None else found.instance,
            layer.own if found.own is None else found.own,
            layer.partial is True or found.partial,
            layer.stream if found.stream is None else found.stream,
        )
        if layer.partial is not None and (layer.partial or found.cut_from in cut):
            break
    if "\n" not in found.body:
        yield found
        return
    for line in found.body.split("\n"):
        yield found._replace(body=line)


def plain(text: str) -> str:
    """Drop colour sequences, also those that lost their escape character on the way."""
    if "\x1b" in text:
        return _ANSI.sub("", text)
    if "m(" in text[:12] or "m [" in text[:80]:
        return _ANSI_LOST_ESCAPE.sub("", text)
    return text


def _outermost(text: str) -> Layer | None:
    if _PLAIN.match(text) is not None and text[:1] not in " \t":
        return None
    for envelope in _BY_START.get(text[:1], ()):
        layer = envelope(text)
        if layer is not None:
            return layer
    return None
