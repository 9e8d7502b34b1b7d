"""UTC seconds ↔ ISO 8601 with a Z, to the millisecond, so that a saved report reads back."""

from datetime import UTC, datetime

from forensics.errors import InputError

# Beyond these, a stamp is damage rather than a time: years 1 and 9999 are what ISO 8601 can say.
_FIRST = -62_135_596_800.0
_LAST = 253_402_300_799.0


def iso(seconds: float) -> str:
    """Write UTC seconds as ISO 8601, with milliseconds only when there are some.

    >>> iso(1796059925.325), iso(1796059925.0)
    ('2026-11-30T16:12:05.325Z', '2026-11-30T16:12:05Z')
    """
    clamped = min(max(seconds, _FIRST), _LAST)
    moment = datetime.fromtimestamp(round(clamped * 1000) // 1000, UTC)
    millis = round(clamped * 1000) % 1000
    tail = f".{millis:03d}Z" if millis else "Z"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + tail


def seconds(text: str) -> float:
    """Read what `iso` wrote.

    Raises:
        InputError: the text is not an ISO 8601 time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not an ISO 8601 time such as 2026-11-29T17:33:05Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0).timestamp()
    return whole + round(moment.microsecond / 1000) / 1000
