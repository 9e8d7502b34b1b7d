"""The flags of the vLLM server by release, read from `flags.toml`.

The server accepts `--max_num_seqs` for `--max-num-seqs`, unambiguous beginnings of names, `--no-x`
for a switch `--x`, and `--x.key value` for a flag that takes JSON: `flag` resolves all of them.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypedDict, cast

from forensics.catalog.versions import Span, version

FlagKind = Literal["int", "float", "fraction", "size", "length", "bool", "choice", "json", "text"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Attributes:
        name: with its dashes, e.g. ``--max-num-seqs``.
        group: batching, admission, scheduling, caching, memory, parallel, model, logging, metrics.
        kind: what it takes; ``fraction`` is 0 to 1, ``size`` bytes with or without a unit,
            ``length`` tokens with or without a unit (or ``auto``), ``bool`` nothing at all.
        choices: for kind ``choice``.
        aliases: other spellings.
        span: releases that accept it.
        v0_only: the V1 engine takes no notice of it.
        renamed_to: the flag with the same values that took its place.
        replaced_by: what to use instead, in words.
        notes: for people.
    """

    name: str
    group: str
    kind: FlagKind
    choices: tuple[str, ...]
    aliases: tuple[str, ...]
    span: Span
    v0_only: bool
    renamed_to: str | None
    replaced_by: str | None
    notes: str | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two flags that should not be given together, and why."""

    flags: tuple[str, str]
    why: str


class _Row(TypedDict, total=False):
    name: str
    group: str
    kind: FlagKind
    choices: list[str]
    aliases: list[str]
    first: str
    last: str
    v0_only: bool
    renamed_to: str
    replaced_by: str
    notes: str


class _ConflictRow(TypedDict):
    flags: list[str]
    why: str


class _File(TypedDict):
    others: list[str]
    flag: list[_Row]
    conflict: list[_ConflictRow]


@cache
def flags() -> dict[str, Flag]:
    """Return the catalogued flags by name, in the order of the file."""
    return {row["name"]: _flag(row) for row in _file()["flag"]}


@cache
def conflicts() -> tuple[Conflict, ...]:
    """Return the pairs of flags that should not be given together."""
    return tuple(
        Conflict((row["flags"][0], row["flags"][1]), row["why"]) for row in _file()["conflict"]
    )


@cache
def flag(written: str) -> Flag | None:
    """Return the catalogued flag that something written on a command line names, or None."""
    if written in flags():  # before spellings are made equal: 0.5.0 had --preemption_mode
        return flags()[written]
    name = _spelling(written)
    found = flags().get(name) or _by_alias().get(name)
    if found is None and name.startswith("--no-"):
        positive = flags().get("--" + name.removeprefix("--no-"))
        return positive if positive is not None and positive.kind == "bool" else None
    if found is None:
        longer = [known for known in known_names() if known.startswith(name)]
        if len(longer) == 1 and len(name) > len("--max"):
            return flags().get(longer[0])
    return found


@cache
def exists(written: str) -> bool:
    """Tell whether any release has an option of this name (or one that begins with it)."""
    name = _spelling(written)
    names = {name}
    if name.startswith("--no-"):
        names.add("--" + name.removeprefix("--no-"))
    return any(known.startswith(tuple(names)) for known in known_names()) or name in _by_alias()


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of all options of the server, catalogued by release or not."""
    return (*flags(), *_file()["others"])


def _spelling(written: str) -> str:
    name = written.split("=", 1)[0]
    if not name.startswith("--"):
        return name
    return name.split(".", 1)[0].replace("_", "-")


@cache
def _by_alias() -> dict[str, Flag]:
    return {alias: entry for entry in flags().values() for alias in entry.aliases}


@cache
def _file() -> _File:
    text = files("forensics.catalog").joinpath("flags.toml").read_text(encoding="utf-8")
    return cast(_File, tomllib.loads(text))


def _flag(row: _Row) -> Flag:
    return Flag(
        name=row["name"],
        group=row["group"],
        kind=row["kind"],
        choices=tuple(row.get("choices", ())),
        aliases=tuple(row.get("aliases", ())),
        span=_span(row["first"], row["last"]),
        v0_only=row.get("v0_only", False),
        renamed_to=row.get("renamed_to"),
        replaced_by=row.get("replaced_by"),
        notes=row.get("notes"),
    )


def _span(first: str, last: str) -> Span:
    return Span(version(first), version(last))
