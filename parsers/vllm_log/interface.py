r"""What a named log pattern is, and the small language its shapes are written in.

A shape is written as vLLM writes its own template, so that the two can be held side by side::

    Overriding num_gpu_blocks={num_gpu_blocks:d} with num_gpu_blocks_override={override_blocks:d}

* ``{name:d}`` an integer (thousands separators allowed), ``{name:f}`` a decimal number,
  ``{name:w}`` text without blanks, ``{name:s}`` any text; ``{:s}`` is any text that is not kept;
* ``[[ ... ]]`` an optional part;
* everything else is literal. A shape must fit the whole message.

`{name:d}` and `{name:f}` also accept a word, because modified servers print such; a number that is
none is left out of the fields, and the line still counts as understood.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

Value = str | int | float | bool | list[str] | list[int] | list[float]
Fields = dict[str, Value]

_FIELD = re.compile(r"\{(?P<name>\w*):(?P<kind>[dfws])\}|(?P<open>\[\[)|(?P<close>\]\])")
_CAPTURE = {"d": r"\S+?", "f": r"\S+?", "w": r"\S+?", "s": r".*?"}


def integer(text: str) -> int | None:
    """Read an integer with optional thousands separators; None when it is none."""
    digits = text.replace(",", "")
    return int(digits) if digits.lstrip("-").isdecimal() and len(digits) < 20 else None


def decimal(text: str) -> float | None:
    """Read a finite decimal number; None for nan, inf and words."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None


def _word(text: str) -> str:
    return text


_READERS: Mapping[str, Callable[[str], Value | None]] = {
    "d": integer,
    "f": decimal,
    "w": _word,
    "s": _word,
}


class Fact(NamedTuple):
    """One statement of the server about itself: `key` and `value` of the facts table."""

    key: str
    value: str


@dataclass(frozen=True)
class Shape:
    """One compiled shape.

    Attributes:
        text: the shape as written.
        prefix: the literal text it starts with; may be empty.
        source: its regular expression.
        readers: how each named group becomes a value.
    """

    text: str
    prefix: str
    source: str
    readers: tuple[tuple[str, Callable[[str], Value | None]], ...]

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The compiled expression; made when it is first asked, as most shapes never are."""
        return re.compile(self.source, re.DOTALL)

    def fields(self, message: str) -> Fields | None:
        """Return the typed fields when the shape takes the message, else None."""
        if not message.startswith(self.prefix):
            return None
        match = self.expression.fullmatch(message)
        if match is None:
            return None
        found: Fields = {}
        for name, reader in self.readers:
            text = match[name]
            value = None if text is None else reader(text)
            if value is not None:
                found[name] = value
        return found


def compile_shape(text: str) -> Shape:
    """Compile a shape; see the module's docstring for the language."""
    pieces: list[str] = []
    readers: list[tuple[str, Callable[[str], Value | None]]] = []
    prefix: str | None = None
    last = 0
    for match in _FIELD.finditer(text):
        literal = text[last : match.start()]
        pieces.append(re.escape(literal))
        if prefix is None:
            prefix = literal
        if match["open"]:
            pieces.append("(?:")
        elif match["close"]:
            pieces.append(")?")
        elif match["name"]:
            pieces.append(f"(?P<{match['name']}>{_CAPTURE[match['kind']]})")
            readers.append((match["name"], _READERS[match["kind"]]))
        else:
            pieces.append(_CAPTURE[match["kind"]])
        last = match.end()
    pieces.append(re.escape(text[last:]))
    return Shape(text, text if prefix is None else prefix, "".join(pieces), tuple(readers))


FactMaker = Callable[[str, Fields], Iterator[Fact]]
"""From the message and its fields to the facts it states."""

FieldMaker = Callable[[str], Fields | None]
"""From a message to its fields; None when the pattern does not take it."""


@dataclass(frozen=True)
class LogPattern:
    """A family of line: what it is called, what it looks like, what is kept of it.

    Attributes:
        name: unique; ``<kind>`` or ``<kind>_<variant>``.
        kind: the `kind` of its events.
        shapes: tried in order; the first that takes the message gives the fields.
        since / until: first and last vLLM release seen to print it; empty for lines of others.
        facts: field name → fact key, for fields that state something about the server.
        make_facts: for facts that are more than a renamed field.
        make_fields: replaces the shapes where fields must be found by name.
        gates: literal beginnings of the messages, needed with `make_fields` only.
        constants: fields that the wording itself states.
        ignored: the line is known and carries nothing.
    """

    name: str
    kind: str
    shapes: tuple[Shape, ...] = ()
    since: str = ""
    until: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    make_facts: FactMaker | None = None
    make_fields: FieldMaker | None = None
    gates: tuple[str, ...] = ()
    constants: Mapping[str, Value] = field(default_factory=dict)
    ignored: bool = False

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """Literal beginnings by which the registry finds the pattern; "" means anywhere."""
        return self.gates or tuple(shape.prefix for shape in self.shapes)

    def take(self, message: str) -> Fields | None:
        """Return the fields when this pattern takes the message, else None."""
        if self.make_fields is not None:
            found = self.make_fields(message) if message.startswith(self.gates) else None
        else:
            found = None
            for shape in self.shapes:
                found = shape.fields(message)
                if found is not None:
                    break
        if found is not None and self.constants:
            found.update(self.constants)
        return found

    def state(self, message: str, fields: Fields) -> tuple[Fact, ...]:
        """Return the facts that a taken message states."""
        if not self.facts and self.make_facts is None:
            return ()
        stated = [
            Fact(key, plain(fields[name])) for name, key in self.facts.items() if name in fields
        ]
        if self.make_facts is not None:
            stated.extend(self.make_facts(message, fields))
        return tuple(stated)


def plain(value: Value) -> str:
    """Write a value as the facts table keeps it."""
    return value if isinstance(value, str) else repr(value)


def pattern(
    name: str,
    *shapes: str,
    kind: str | None = None,
    since: str = "",
    until: str = "",
    facts: Mapping[str, str] | None = None,
    make_facts: FactMaker | None = None,
    constants: Mapping[str, Value] | None = None,
    ignored: bool = False,
) -> LogPattern:
    """Declare a pattern from shapes in the small language; `kind` defaults to `name`."""
    return LogPattern(
        name=name,
        kind=kind or name,
        shapes=tuple(compile_shape(shape) for shape in shapes),
        since=since,
        until=until,
        facts=facts or {},
        make_facts=make_facts,
        constants=constants or {},
        ignored=ignored,
    )
