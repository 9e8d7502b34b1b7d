"""What settles a clock when it is not the traffic: the wrapper, the operator, the file, nothing."""

from datetime import UTC, datetime

import numpy as np
import pytest

from forensics.diary.engines import map_engines
from forensics.errors import UsageError
from forensics.timeline.clock_changes import pieces_of, spread
from forensics.timeline.clocks import settle

HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def printed(text: str) -> float:
    return at(f"1972-{text.replace(' ', 'T')}")


def lines(texts, outer=None, clock="yearless"):
    stamp = printed if clock == "yearless" else at
    return [
        (
            stamp(text),
            "stats_periodic",
            {"running": 1},
            {"clock": clock, "outer": None if outer is None else at(outer[number])},
        )
        for number, text in enumerate(texts)
    ]


def settled(evidence, **how):
    return settle(evidence, map_engines(evidence), **how)


def times(result) -> list[str]:
    return [
        datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for second in result.evidence.events["stamp"]
    ]


def test_wrapper_stamps_win_and_tell_the_zone(evidence_of):
    evidence = evidence_of(
        events=lines(
            ["11-30 02:30:00", "11-30 02:30:10"], ["2026-11-29T17:30:00", "2026-11-29T17:30:10"]
        )
    )
    result = settled(evidence)
    (note,) = result.notes
    assert times(result) == ["2026-11-29 17:30:00", "2026-11-29 17:30:10"]
    assert (note.quality, note.offset_s, note.time_zone) == ("exact", 9 * HOUR, "UTC+09:00")
    assert note.year == 2026
    assert set(result.evidence.events["clock"]) == {"utc"}


def test_wrapper_settles_the_year_at_new_year(evidence_of):
    evidence = evidence_of(
        events=lines(
            ["01-01 08:59:55", "01-01 09:00:05"], ["2026-12-31T23:59:55", "2027-01-01T00:00:05"]
        )
    )
    result = settled(evidence)
    assert times(result)[0] == "2026-12-31 23:59:55"
    assert result.notes[0].year == 2027


def test_line_that_the_wrapper_did_not_stamp_follows_the_others(evidence_of):
    rows = lines(
        ["11-30 02:30:00", "11-30 02:30:10", "11-30 02:30:20"],
        ["2026-11-29T17:30:00", "2026-11-29T17:30:10", "2026-11-29T17:30:20"],
    )
    rows[1][3]["outer"] = None
    assert times(settled(evidence_of(events=rows)))[1] == "2026-11-29 17:30:10"


def test_wrapper_alone_stamps_lines_without_one(evidence_of):
    rows = lines(["11-30 02:30:00"], ["2026-11-29T17:30:00"])
    rows.append((None, "engine_death", {}, {"clock": "none", "outer": at("2026-11-29T17:31:00")}))
    assert times(settled(evidence_of(events=rows)))[1] == "2026-11-29 17:31:00"


@pytest.mark.parametrize("zone", ["Asia/Seoul", "+09:00", "+0900"])
def test_zone_of_the_operator(evidence_of, zone):
    evidence = evidence_of(events=lines(["11-30 02:30:00"]))
    result = settled(evidence, tz=zone, mtimes={0: at("2026-11-29T18:00:00")})
    assert times(result) == ["2026-11-29 17:30:00"]
    assert result.notes[0].quality == "exact"
    assert result.notes[0].time_zone == zone


def test_zone_of_the_operator_over_a_clock_change(evidence_of):
    # Berlin, 2026-10-25: after 02:59 comes 02:00 again.
    texts = ["10-25 02:59:50", "10-25 02:00:10", "10-25 02:59:50", "10-25 03:00:10"]
    evidence = evidence_of(events=lines(texts))
    result = settled(evidence, tz="Europe/Berlin", mtimes={0: at("2026-10-26T00:00:00")})
    assert times(result) == [
        "2026-10-25 00:59:50",
        "2026-10-25 01:00:10",
        "2026-10-25 01:59:50",
        "2026-10-25 02:00:10",
    ]


def test_unknown_zone_of_the_operator(evidence_of):
    with pytest.raises(UsageError, match="Mars"):
        settled(evidence_of(events=lines(["11-30 02:30:00"])), tz="Mars/Olympus")


def test_log_alone_is_read_as_utc_and_says_so(evidence_of):
    evidence = evidence_of(events=lines(["11-30 02:30:00"]))
    result = settled(evidence, mtimes={0: at("2026-11-30T05:00:00")})
    (note,) = result.notes
    assert times(result) == ["2026-11-30 02:30:00"]
    assert (note.quality, note.offset_s, note.year) == ("assumed", None, 2026)
    assert "there are no metrics to compare with" in note.how
    assert "--tz" in note.how


def test_log_alone_over_a_clock_change_stays_in_order(evidence_of):
    evidence = evidence_of(events=lines(["10-25 02:59:50", "10-25 02:00:00", "10-25 02:00:10"]))
    result = settled(evidence, mtimes={0: at("2026-10-26T00:00:00")})
    stamps = result.evidence.events["stamp"].to_numpy()
    assert np.diff(stamps).tolist() == [10.0, 10.0]


def test_stamps_with_a_zone_need_nothing(evidence_of):
    evidence = evidence_of(events=lines(["2026-11-29T17:30:00"], clock="utc"))
    result = settled(evidence)
    assert times(result) == ["2026-11-29 17:30:00"]
    assert result.notes == ()


def test_facts_move_with_their_log(evidence_of):
    evidence = evidence_of(
        events=lines(["11-30 02:30:00"]),
        facts=[(printed("11-30 02:29:00"), "vllm.version", "0.32.0", {"clock": "yearless"})],
    )
    result = settled(evidence, tz="+09:00", mtimes={0: at("2026-11-29T18:00:00")})
    assert result.evidence.facts["stamp"].to_list() == [at("2026-11-29T17:29:00")]


def test_evidence_without_a_log_has_no_notes(evidence_of):
    evidence = evidence_of([("vllm:num_requests_running", {}, [(at("2026-11-29T17:30:00"), 1.0)])])
    assert settled(evidence).notes == ()


def test_nothing_at_all(evidence_of):
    assert settled(evidence_of()).notes == ()


def parts(*stamps):
    local = np.array(stamps)
    return pieces_of(local, ~np.isnan(local)), local


def test_pause_of_an_hour_is_no_clock_change():
    pieces, local = parts(0.0, 10.0, 3610.0, 3620.0)
    assert [piece.tolist() for piece in pieces] == [[0, 1], [2, 3]]
    assert spread(pieces, [120.0, None], local).tolist() == [120.0] * 4


def test_part_before_a_known_one_follows_it():
    pieces, local = parts(3600.0, 3610.0, 20.0, 30.0)
    assert spread(pieces, [None, 3600.0], local).tolist() == [7200.0, 7200.0, 3600.0, 3600.0]


def test_lines_of_another_process_that_still_show_the_old_hour():
    pieces, local = parts(7190.0, 7200.0, 3610.0, 7205.0, 3620.0, 3630.0)
    offsets = spread(pieces, [0.0] + [None] * (len(pieces) - 1), local)
    assert (local - offsets).tolist() == [7190.0, 7200.0, 7210.0, 7205.0, 7220.0, 7230.0]


def test_two_formatters_of_one_log_agree_on_the_year(evidence_of):
    mixed = [
        *lines(["12-31 23:59:50"]),
        *lines(["2026-12-31T23:59:55"], clock="local"),
        *lines(["01-01 00:00:00"]),
        *lines(["2027-01-01T00:00:05"], clock="local"),
    ]
    result = settled(evidence_of(events=mixed))
    assert times(result) == [
        "2026-12-31 23:59:50",
        "2026-12-31 23:59:55",
        "2027-01-01 00:00:00",
        "2027-01-01 00:00:05",
    ]
    assert result.notes[0].year == 2026
