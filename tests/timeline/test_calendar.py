from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import UsageError
from forensics.timeline.calendar import (
    date_stamps,
    name_offset,
    parse_offset,
    year_before,
    year_nearest,
    zone_offsets,
)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def yearless(text: str) -> float:
    """Seconds of ``12-31 23:59:50`` as if in 1972."""
    return at(f"1972-{text.replace(' ', 'T')}")


def dated(texts: list[str], year: int) -> list[str]:
    stamps = date_stamps(np.array([yearless(text) for text in texts]), year)
    return [datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S") for second in stamps]


def test_new_year_inside_a_log():
    assert dated(["12-31 23:59:50", "01-01 00:00:10"], 2026) == [
        "2026-12-31 23:59:50",
        "2027-01-01 00:00:10",
    ]


def test_lines_that_interleave_around_new_year():
    stamps = ["12-31 23:59:59", "01-01 00:00:00", "12-31 23:59:59", "01-01 00:00:01"]
    years = [text[:4] for text in dated(stamps, 2026)]
    assert years == ["2026", "2027", "2026", "2027"]


@pytest.mark.parametrize(
    ("year", "before", "after"),
    [(2026, "2026-02-28", "2026-03-01"), (2028, "2028-02-28", "2028-03-01")],
)
def test_days_after_february_of_common_and_leap_years(year, before, after):
    found = dated(["02-28 12:00:00", "03-01 12:00:00"], year)
    assert [text[:10] for text in found] == [before, after]


def test_leap_day():
    assert dated(["02-29 12:00:00"], 2028) == ["2028-02-29 12:00:00"]


def test_stamps_that_are_not_there_stay_unknown():
    found = date_stamps(np.array([np.nan, yearless("06-01 00:00:00")]), 2026)
    assert np.isnan(found[0])
    assert found[1] == at("2026-06-01T00:00:00")


@pytest.mark.parametrize(
    ("stamp", "known", "year"),
    [
        ("12-31 23:30:00", "2027-01-01T08:30:00", 2026),
        ("01-01 08:30:00", "2026-12-31T23:30:00", 2027),
        ("07-01 00:00:00", "2026-07-01T00:00:00", 2026),
    ],
)
def test_year_is_the_one_nearest_to_a_known_time(stamp, known, year):
    assert year_nearest(yearless(stamp), at(known)) == year


@pytest.mark.parametrize(
    ("stamp", "changed", "year"),
    [
        ("08-01 00:00:00", "2027-03-01T00:00:00", 2026),  # seven months old, not of the future
        ("12-31 23:00:00", "2027-01-01T00:00:00", 2026),
        ("01-01 08:00:00", "2026-12-31T23:00:00", 2027),  # written in a zone ahead of UTC
        ("02-29 00:00:00", "2028-03-01T00:00:00", 2028),
    ],
)
def test_log_is_not_younger_than_its_file(stamp, changed, year):
    assert year_before(yearless(stamp), at(changed)) == year


def test_hour_shown_twice_is_the_second_one_after_the_jump_back():
    """Europe/Berlin shows 02:00 to 03:00 twice on 2026-10-25: first at +2 h, then at +1 h."""
    texts = ["02:10:00", "02:50:00", "02:05:00", "02:55:00", "03:05:00"]
    local = np.array([at(f"2026-10-25T{text}") for text in texts])
    assert zone_offsets(local, "Europe/Berlin").tolist() == [7200.0, 7200.0, 3600.0, 3600.0, 3600.0]


def test_daylight_saving_changes_the_offset_within_a_log():
    # Europe/Berlin leaves summer time on 2026-10-25 at 03:00 local.
    local = np.array([at("2026-10-25T01:30:00"), at("2026-10-25T03:30:00")])
    assert zone_offsets(local, "Europe/Berlin").tolist() == [7200.0, 3600.0]


def test_zone_without_daylight_saving():
    assert zone_offsets(np.array([at("2026-11-30T02:30:00")]), "Asia/Seoul").tolist() == [32400.0]


def test_unknown_zone_is_a_usage_error_that_says_what_to_write():
    with pytest.raises(UsageError, match="Asia/Seoul, or \\+09:00"):
        zone_offsets(np.array([0.0]), "Mars/Olympus")


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "/etc/localtime"])
def test_zone_names_never_leave_the_zone_database(name):
    with pytest.raises(UsageError):
        zone_offsets(np.array([0.0]), name)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("+09:00", 32400.0),
        ("-0330", -12600.0),
        ("+9", 32400.0),
        ("UTC", 0.0),
        ("Z", 0.0),
        ("+05:45", 20700.0),
        ("+15:00", None),
        ("+09:60", None),
        ("Asia/Seoul", None),
        ("+", None),
        ("+²", None),
    ],
)
def test_written_offsets(text, seconds):
    assert parse_offset(text) == seconds


@given(st.integers(-14 * 4, 14 * 4))
def test_an_offset_reads_back_as_written(quarters):
    seconds = quarters * 900.0
    assert parse_offset(name_offset(seconds).removeprefix("UTC")) == seconds
