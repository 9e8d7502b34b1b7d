"""Which vLLM releases a document is written for."""

import re
from dataclasses import dataclass
from functools import cache

from forensics.catalog.flags_catalog import flags
from forensics.catalog.metrics_catalog import families, newest_release
from forensics.catalog.versions import (
    Generation,
    Span,
    Version,
    default_generation,
    parse_version,
    version,
)
from forensics.errors import ConfigError

_OLDEST = Version((0, 2, 0))
_ENDLESS = 9999
_BOUND = re.compile(r"(>=|<=|==|=|>|<|~=)?\s*v?(\d+\.\d+(?:\.(?:\d+|x|\*))?)(?:[.\-+]?[a-z]\S*)?")
_RANGE = re.compile(r"(\S+?)\s*(?:\.\.|–|\s-\s|-(?=v?\d))\s*(\S+)")


@dataclass(frozen=True, slots=True)
class Target:
    """The releases a document speaks of.

    Attributes:
        releases: those of them in which anything in the catalogues began or ended, ascending.
        stated: as written by the author; None when nobody said and the newest is assumed.
        forced: the engine generation where the author names it.
    """

    releases: tuple[Version, ...]
    stated: str | None
    forced: Generation | None = None

    def generation(self, release: Version) -> Generation:
        """Return the engine generation that serves in one of the releases."""
        return self.forced or default_generation(release)

    def __str__(self) -> str:
        if self.stated is None:
            return f"{self.releases[-1]} (the newest known; no target version is stated)"
        first, last = self.releases[0], self.releases[-1]
        return str(first) if first == last else f"{first} to {last}"


def target(stated: str | None, engine: Generation | None = None) -> Target:
    """Return the target for what an author wrote; None stands for the newest release.

    Raises:
        ConfigError: when it is no release and no range.
    """
    if stated is None:
        return Target((newest_release(),), None, engine)
    span = parse_span(stated)
    if span.first == span.last and span.first <= newest_release():
        return Target((span.first,), stated, engine)
    first, last = min(span.first, newest_release()), min(span.last, newest_release())
    releases = [release for release in known_releases() if first <= release <= last]
    if not releases or (releases[0] != first and span.first.numbers[2] != _ENDLESS):
        releases.insert(0, first)
    return Target(tuple(releases), stated, engine)


@cache
def parse_span(text: str) -> Span:
    """Read a release or a range of releases.

    >>> str(parse_span("0.11.1")), str(parse_span("0.9.2..0.10.2")), str(parse_span("v0.9.1-0.9.2"))
    ('0.11.1', '0.9.2..0.10.2', '0.9.1..0.9.2')
    >>> parse_span("0.11") == parse_span("0.11.x") == parse_span(">=0.11,<0.12")
    True
    """
    text = text.strip().strip("\"'")
    pair = _RANGE.fullmatch(text)
    if pair is not None and parse_version(pair[1]) and parse_version(pair[2]):
        span = Span(_bounds(pair[1])[0], _bounds(pair[2])[1])
    else:
        first, last = _OLDEST, Version((_ENDLESS, 0, 0))
        for part in text.split(","):
            match = _BOUND.fullmatch(part.strip())
            if match is None:
                raise ConfigError(
                    f"{text!r} is no vLLM release or range; write 0.11.2, 0.11, >=0.9.2,<0.12 "
                    "or 0.9.2..0.11.2"
                )
            low, high = _bounds(match[2])
            if match[1] in (None, "==", "=", "~="):
                first, last = max(first, low), min(last, high)
            elif match[1] in (">=", ">"):
                first = max(first, low if match[1] == ">=" else _after(high))
            else:
                last = min(last, high if match[1] == "<=" else _before(low))
        span = Span(first, last)
    if span.last < span.first:
        raise ConfigError(f"no vLLM release lies in {text!r}")
    return span


@cache
def known_releases() -> tuple[Version, ...]:
    """Return the releases in which anything in the catalogues began or ended, ascending."""
    found = set()
    for family in families().values():
        for entry in (*family.ranges, *family.hidden):
            found |= {entry.span.first, entry.span.last}
    for flag in flags().values():
        found |= {flag.span.first, flag.span.last}
    return tuple(sorted(found))


def _bounds(text: str) -> tuple[Version, Version]:
    """`0.11` and `0.11.x` are all its patch releases."""
    whole = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.[x*])?", text.strip())
    if whole:
        major, minor = int(whole[1]), int(whole[2])
        return Version((major, minor, 0)), Version((major, minor, _ENDLESS))
    exact = version(text)
    return exact, exact


def _after(release: Version) -> Version:
    major, minor, patch = release.numbers
    return Version((major, minor + 1, 0) if patch == _ENDLESS else (major, minor, patch + 1))


def _before(release: Version) -> Version:
    major, minor, patch = release.numbers
    return Version((major, minor, patch - 1) if patch else (major, minor - 1, _ENDLESS))
