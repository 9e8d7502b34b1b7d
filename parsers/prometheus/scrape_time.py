"""Finds out when a scrape was taken: from a line beside it, or from the name of its file.

`/metrics` text has no time of its own. People keep it with `date` between the scrapes, or in files
named after the moment.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

_ISO = re.compile(
    r"(?P<y>20\d\d)-?(?P<mo>\d\d)-?(?P<d>\d\d)[T _-]?"
    r"(?P<h>\d\d)[:_.-]?(?P<mi>\d\d)(?:[:_.-]?(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?)?"
    r"(?P<z>\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?(?!\d)"
)
_EPOCH = re.compile(r"(?<!\d)(?P<epoch>1\d{9})(?P<f>\d{3}(?!\d)|\.\d{1,9})?(?!\d)")
_DATE_COMMAND = re.compile(
    r"(?P<mo>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\s+(?P<d>\d{1,2})\s+"
    r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:\s*(?P<ampm>[AP]M))?"
    r"(?:\s+(?P<z>[A-Z]{3,5}|[+-]\d{2,4}))?\s+(?P<y>20\d\d)"
)
_DATE_COMMAND_DAY_FIRST = re.compile(
    r"(?P<d>\d{1,2})\s+(?P<mo>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\s+(?P<y>20\d\d)\s+"
    r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:\s*(?P<ampm>[AP]M))?"
    r"(?:\s+(?P<z>[A-Z]{3,5}|[+-]\d{2,4}))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UTC_NAMES = ("Z", "UTC", "GMT")
_LONGEST = 200  # a line longer than this is not a time line


class Moment(NamedTuple):
    """A time that stands in a text.

    Attributes:
        stamp: UTC seconds; reckoned as if in UTC when the zone is not known.
        zoned: the text says which zone it means (Unix seconds do).
    """

    stamp: float
    zoned: bool


def moment_in(text: str) -> Moment | None:
    """Return the time that a file name or a line names; None when it names none.

    Zone abbreviations other than UTC's are ambiguous and count as not known.

    Example:
        >>> moment_in("metrics-20261129T172730Z.prom"), moment_in("metrics.prom")
        (Moment(stamp=1795973250.0, zoned=True), None)
        >>> moment_in("Sun Nov 29 17:27:30 KST 2026")
        Moment(stamp=1795973250.0, zoned=False)
    """
    text = text[:_LONGEST]
    match = _ISO.search(text)
    if match is not None and (moment := _moment(match, int(match["mo"]))) is not None:
        return moment
    match = _DATE_COMMAND.search(text) or _DATE_COMMAND_DAY_FIRST.search(text)
    if match is not None:
        return _moment(match, _MONTHS.index(match["mo"]) + 1)
    match = _EPOCH.search(text)
    if match is None:
        return None
    fraction = match["f"] or ""
    part = float(fraction) if fraction.startswith(".") else int(fraction or 0) / 1000
    return Moment(float(match["epoch"]) + part, zoned=True)


def _moment(match: re.Match[str], month: int) -> Moment | None:
    """Reckon the seconds of a match; None for a date that does not exist."""
    parts = match.groupdict()
    hour = int(parts["h"])
    if parts.get("ampm"):
        hour = hour % 12 + (12 if parts["ampm"] == "PM" else 0)
    fraction = float(f"0.{parts.get('f') or 0}")
    zone = _zone((parts["z"] or "").strip())
    try:
        moment = datetime(
            int(parts["y"]),
            month,
            int(parts["d"]),
            hour,
            int(parts["mi"]),
            int(parts["s"] or 0),
            tzinfo=zone or UTC,
        )
    except ValueError:
        return None
    return Moment(moment.timestamp() + fraction, zone is not None)


def _zone(name: str) -> timezone | None:
    """Return the zone of a name of UTC or of a numeric offset; None for all else."""
    if name in _UTC_NAMES:
        return UTC
    if not name or name[0] not in "+-":
        return None
    digits = name[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset >= timedelta(hours=24):
        return None
    return timezone(-offset if name[0] == "-" else offset)
