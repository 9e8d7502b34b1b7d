"""Full dates, as container runtimes, log shippers and custom formatters print them."""

import re
from calendar import timegm
from functools import lru_cache

RFC3339 = (
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>[.,]\d+)?"
    r"(?P<zone> ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
LEVEL = r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b"
_WHOLE = re.compile(RFC3339)
_YEARLESS = re.compile(r"\d\d-\d\d \d\d:\d\d:\d\d(?![\d-])")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_KIBANA = re.compile(
    rf"(?P<month>{'|'.join(_MONTHS)})\w* (?P<day>\d{{1,2}}), (?P<year>\d{{4}}) @ "
    r"(?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?"
)


@lru_cache(maxsize=65536)
def yearless(stamp: str) -> float | None:
    """Read ``MM-DD HH:MM:SS`` as seconds of the leap year 1972; None when it is no date.

    >>> yearless("01-02 00:00:01") - yearless("01-01 00:00:00")
    86401.0
    """
    month, day = int(stamp[:2]), int(stamp[3:5])
    hour, minute, second = int(stamp[6:8]), int(stamp[9:11]), int(stamp[12:14])
    lengths = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (1 <= month <= 12 and 1 <= day <= lengths[month - 1]):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    return float(timegm((1972, month, day, hour, minute, second)))


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

    Numbers are told apart by their size: seconds, milliseconds, microseconds, nanoseconds. The
    clock of vLLM's own date format, often kept in JSON formatters, is ``yearless``.
    """
    if isinstance(value, str):
        return _written(value)
    if isinstance(value, dict) and isinstance(value.get("seconds"), int):
        nanos = value.get("nanos")
        return instant(value["seconds"] + (nanos / 1e9 if isinstance(nanos, int) else 0.0))
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        for limit, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
            if value < limit:
                return "utc", value / unit
    return None


def _written(text: str) -> tuple[str, float] | None:
    match = _WHOLE.match(text)
    if match is not None:
        return dated(match["date"], match["time"], match["fraction"], match["zone"])
    if _YEARLESS.match(text) is not None:
        stamp = yearless(text[:14])
        return None if stamp is None else ("yearless", stamp)
    kibana = _KIBANA.match(text)
    if kibana is not None:
        month = _MONTHS.index(kibana["month"]) + 1
        date = f"{kibana['year']}-{month:02d}-{int(kibana['day']):02d}"
        return dated(date, kibana["time"], kibana["fraction"], None)
    return instant(int(text)) if text.isdecimal() and len(text) <= 20 else None
