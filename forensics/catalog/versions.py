"""vLLM release numbers: order, ranges, and which engine generation a release runs."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Literal

from forensics.errors import ConfigError

Generation = Literal["V0", "V1"]

_RELEASE = re.compile(
    r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[.\-+]?(?:post|rc|dev|g)?[\w.+\-]*)?\s*"
)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """One release. Suffixes (`.post1`, `rc2`, `+cu128`) do not take part.

    Attributes:
        numbers: major, minor, patch.
    """

    numbers: tuple[int, int, int]

    def __lt__(self, other: "Version") -> bool:
        return self.numbers < other.numbers

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


def parse_version(text: str) -> Version | None:
    """Read a release number as people and servers write it; None when it is none.

    >>> str(parse_version("v0.9.2.post1")), str(parse_version("0.33")), parse_version("main")
    ('0.9.2', '0.33.0', None)
    """
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        return None
    return Version((int(match[1]), int(match[2]), int(match[3] or 0)))


def version(text: str) -> Version:
    """Read a release number that must be one.

    Raises:
        ConfigError: when it is not.
    """
    found = parse_version(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a vLLM release; write it like 0.11.2")
    return found


@dataclass(frozen=True, slots=True)
class Span:
    """Releases from `first` to `last`, both included."""

    first: Version
    last: Version

    def __contains__(self, release: Version) -> bool:
        return self.first <= release <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}..{self.last}"


V1_FIRST = Version((0, 7, 0))
"""First release whose V1 engine serves; opt-in until 0.7.3 (`VLLM_USE_V1=1`)."""
V1_DEFAULT = Version((0, 8, 0))
"""First release that runs V1 unless told or forced otherwise."""
V0_LAST = Version((0, 10, 2))
"""Last release that still has the V0 engine."""


def default_generation(release: Version) -> Generation:
    """Return the engine generation a release runs when nothing chooses one."""
    return "V1" if release >= V1_DEFAULT else "V0"


def possible_generations(release: Version) -> tuple[Generation, ...]:
    """Return the generations a release can run, its default first."""
    if release < V1_FIRST:
        return ("V0",)
    if release > V0_LAST:
        return ("V1",)
    return ("V1", "V0") if release >= V1_DEFAULT else ("V0", "V1")
