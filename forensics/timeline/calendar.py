"""Year-less stamps → dates: a log that prints ``12-31`` then ``01-01`` has passed a New Year.

Year-less stamps are reckoned as if in 1972, a leap year, so that February 29 exists. Given the real
year of the first stamp, each later backward jump of more than half a year is one New Year.
"""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from forensics.errors import UsageError

DAY = 86400.0
REFERENCE_YEAR = 1972
_HALF_YEAR = 183 * DAY
_OF_THE_FILE_S = 30 * DAY
_LEAST_JUMP_S = 1800.0  # Lord Howe Island changes its clocks by half an hour


def _january(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


_MARCH = datetime(REFERENCE_YEAR, 3, 1, tzinfo=UTC).timestamp()


def date_stamps(stamps: np.ndarray, first_year: int) -> np.ndarray:
    """Give year-less stamps (in file order) their years, the first one being `first_year`'s.

    Args:
        stamps: seconds as if in 1972, shape (n,); NaN stays NaN.
        first_year: year of the first stamp.

    Returns:
        Seconds since 1970 in the same (local) clock, shape (n,).
    """
    dated = np.full(stamps.shape, np.nan)
    known = np.flatnonzero(~np.isnan(stamps))
    if not known.size:
        return dated
    values = stamps[known]
    steps = np.diff(values)
    # Lines of several processes interleave, so only a jump of half a year counts, either way.
    years = first_year + np.concatenate(
        ([0], np.cumsum((steps < -_HALF_YEAR).astype(int) - (steps > _HALF_YEAR).astype(int)))
    )
    for year in np.unique(years):
        rows = years == year
        late = 0.0 if _is_leap(int(year)) else DAY
        shift = _january(int(year)) - _january(REFERENCE_YEAR)
        dated[known[rows]] = values[rows] + shift - np.where(values[rows] >= _MARCH, late, 0.0)
    return dated


def year_nearest(stamp: float, target: float) -> int:
    """Give the year that puts a year-less stamp nearest to a known time (UTC seconds)."""
    middle = _year_of(target)
    return min(
        (middle - 1, middle, middle + 1),
        key=lambda year: abs(float(date_stamps(np.array([stamp]), year)[0]) - target),
    )


def _year_of(stamp: float) -> int:
    """Give the year of a time, one that has a neighbour on both sides which a date can name."""
    first, last = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2, 9998))
    return datetime.fromtimestamp(min(max(stamp, first), last), UTC).year


def year_before(stamp: float, latest: float) -> int:
    """Give the last year in which a year-less stamp is not after a known time (UTC seconds).

    A log is not younger than the last change of its file; a month more is allowed, because copies
    and archives do not always keep that time.
    """
    year = _year_of(latest) + 1
    while float(date_stamps(np.array([stamp]), year)[0]) > latest + _OF_THE_FILE_S:
        year -= 1
    return year


def zone_offsets(local: np.ndarray, zone: str) -> np.ndarray:
    """Give the offset from UTC, in seconds, of local times in a zone (daylight saving included).

    The hour that a clock shows twice is the second one from where the log jumps back.

    Args:
        local: local seconds in file order, shape (n,); NaN where unknown.
        zone: IANA name, ``UTC``, or ``±HH:MM``.

    Raises:
        UsageError: the zone is not known.
    """
    fixed = parse_offset(zone)
    if fixed is not None:
        return np.full(local.shape, fixed)
    try:
        tz = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"--tz {zone!r} is no time zone; give an IANA name such as Asia/Seoul, or +09:00"
        ) from None
    quarters = np.floor(local / 900)
    again = _after_jump_back(local)
    offsets = np.zeros(local.shape)
    for quarter in np.unique(quarters[~np.isnan(quarters)]):
        naive = datetime.fromtimestamp(float(quarter) * 900, UTC).replace(tzinfo=tz)
        for fold in (0, 1):
            delta = naive.replace(fold=fold).utcoffset()
            mine = (quarters == quarter) & (again == bool(fold))
            offsets[mine] = delta.total_seconds() if delta is not None else 0.0
    return offsets


def _after_jump_back(local: np.ndarray) -> np.ndarray:
    """Tell which times follow a jump back by half an hour or more; shape (n,)."""
    known = np.flatnonzero(~np.isnan(local))
    again = np.zeros(local.shape, dtype=bool)
    again[known[1:]] = np.cumsum(np.diff(local[known]) <= -_LEAST_JUMP_S) > 0
    return again


def parse_offset(text: str) -> float | None:
    """Read ``+09:00``, ``-0330``, ``UTC`` or ``Z`` as seconds; None when it is something else."""
    word = text.strip()
    if word.upper() in ("UTC", "Z", "GMT"):
        return 0.0
    if len(word) < 2 or word[0] not in "+-":
        return None
    digits = word[1:].replace(":", "")
    if not (digits.isascii() and digits.isdigit()) or len(digits) not in (1, 2, 4):
        return None
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:2]), int(digits[2:]))
    if hours > 14 or minutes > 59:
        return None
    return math.copysign(hours * 3600 + minutes * 60, -1 if word[0] == "-" else 1)


def name_offset(seconds: float) -> str:
    """Write an offset as ``UTC+09:00``."""
    sign = "-" if seconds < 0 else "+"
    minutes = round(abs(seconds) / 60)
    return f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}"
