"""Full dates, as container runtimes, log shippers and custom formatters print them."""

import re
from calendar import timegm

RFC3339 = (
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>[.,]\d+)?"
    r"(?P<zone> ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_WHOLE = re.compile(RFC3339)


def dated(date: str, time: str, fraction: str | None, zone: str | None) -> tuple[str, float] | None:
    """Read a full date; the clock is ``utc`` when it names its zone, else ``local``.

    >>> dated("1970-01-02", "01:00:00", ".5", "+01:00")
    ('utc', 86400.5)
    """
    year, month, day = int(date[:4]), int(date[5:7]), int(date[8:10])
    hour, minute, second = int(time[:2]), int(time[3:5]), int(time[6:8])
    if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60):
        return None
    stamp = float(timegm((year, month, day, hour, minute, second)))
    if fraction is not None:
        stamp += float("0." + fraction[1:19])
    if zone is None:
        return "local", stamp
    named = zone.strip()
    if named not in ("Z", "UTC"):
        shift = int(named[1:3]) * 3600 + int(named[-2:]) * 60
        stamp -= shift if named[0] == "+" else -shift
    return "utc", stamp


def instant(value: object) -> tuple[str, float] | None:
    """Read the stamp of a structured record: text with a date, or a number since the epoch.

    Numbers are told apart by their size: seconds, milliseconds, microseconds, nanoseconds.
    """
    if isinstance(value, str):
        match = _WHOLE.match(value)
        if match is not None:
            return dated(match["date"], match["time"], match["fraction"], match["zone"])
        if not value.isdecimal() or len(value) > 20:
            return None
        return instant(int(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        for limit, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
            if value < limit:
                return "utc", value / unit
    return None
