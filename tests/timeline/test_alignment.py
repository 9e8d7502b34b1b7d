"""The clock between log and metrics, on recordings and on what can become of them on their way.

Every line of the log must end up within one interval of stats lines of its true time, or the offset
must be reported as not determined, with the reason. Truth: the recordings' own, made by one machine
whose log clock is known; copies are shifted, thinned and carried over New Year and clock changes.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

import parsers
from forensics.diary.engines import map_engines
from forensics.timeline.clocks import settle
from parsers.interface import ReadOptions

HOUR = 3600.0
SHIFTS = (-14 * HOUR, 14 * HOUR, 5.75 * HOUR, 7.0, -1234.0)
# One of each kind and engine generation: with fall and without, restarted, V0, even traffic.
CHOSEN = (
    "a-healthy-v032",
    "b-preemption-cliff-v0112",
    "c-diversity-loss-v032",
    "d-lru-eviction-v085-V0",
    "e-restart-v032",
    "f-queueing-v085-V0",
    "g-mixed-v032",
    "h-sweep-v032/mns-064",
    "j-prefix-caching-off-v032",
    "k-long-context-v032",
)
START_SERIES = pl.col("metric").str.ends_with("_created") | (
    pl.col("metric") == "process_start_time_seconds"
)


class Recording:
    """Evidence whose log is yearless and exactly on UTC, so that shifts are the whole offset."""

    def __init__(self, folder):
        self.name = folder.name
        truth = json.loads((folder / "truth.json").read_text("utf-8"))
        self.interval = float(truth["stats_log_interval_s"])
        paths = [*sorted(folder.glob("server.log*")), folder / "metrics"]
        evidence = parsers.read([str(path) for path in paths], ReadOptions())
        self.evidence = on_log(
            evidence, pl.col("stamp") - float(truth["log_utc_offset_s"] or 0), "yearless"
        )

    @property
    def first_metric(self) -> float:
        return float(self.evidence.samples["stamp"].min())


def on_log(evidence, stamp, clock=None):
    def changed(frame):
        mine = pl.col("clock") == "yearless"
        columns = [pl.when(mine).then(stamp).otherwise(pl.col("stamp")).alias("stamp")]
        if clock is not None:
            columns.append(
                pl.when(mine).then(pl.lit(clock)).otherwise(pl.col("clock")).alias("clock")
            )
        return frame.with_columns(columns)

    return replace(evidence, events=changed(evidence.events), facts=changed(evidence.facts))


def shifted(evidence, seconds):
    return on_log(evidence, pl.col("stamp") + seconds)


def without_starts(evidence):
    """Take away the series that say when the server started: traffic alone must do."""
    return replace(evidence, series=evidence.series.filter(~START_SERIES))


def with_lost_scrapes(evidence, share):
    stamps = evidence.samples["stamp"].round().unique().sort()
    kept = stamps.filter(pl.Series(np.random.default_rng(3).random(stamps.len()) > share))
    inside = pl.col("stamp").round().is_in(kept.implode())
    return replace(evidence, samples=evidence.samples.filter(inside))


def scraped_every(evidence, seconds):
    scrape = (pl.col("stamp") / seconds).floor()
    first = evidence.samples.sort("stamp").group_by("series", scrape.alias("scrape")).first()
    return replace(evidence, samples=first.select("series", "stamp", "value"))


@pytest.fixture(scope="module")
def recordings(corpus):
    return {
        str(path.parent.relative_to(corpus)): Recording(path.parent)
        for path in sorted(corpus.rglob("truth.json"))
        if (path.parent / "metrics").is_dir()
    }


def outcome(recording, evidence, seconds):
    """Give the error of the offset in seconds, or None and the reason."""
    (note,) = settle(evidence, map_engines(evidence)).notes
    if note.offset_s is None:
        assert note.quality == "undetermined"
        assert note.how.startswith("read as UTC: ")
        return None
    if note.quality == "assumed":
        assert "to the quarter hour" in note.how
    return abs(note.offset_s - seconds) / recording.interval


def test_every_recording_is_aligned_wherever_its_zone_is(recordings):
    assert len(recordings) == 28
    for name, recording in recordings.items():
        for seconds in (-14 * HOUR, 14 * HOUR, 20_703.0):
            error = outcome(recording, shifted(recording.evidence, seconds), seconds)
            assert error is not None, name
            assert error <= 1.0, (name, seconds)


VARIANTS = {
    "half of the scrapes lost": lambda evidence: with_lost_scrapes(evidence, 0.5),
    "two thirds of the scrapes lost": lambda evidence: with_lost_scrapes(evidence, 0.67),
    "scraped every 15 s": lambda evidence: scraped_every(evidence, 15.0),
    "scraped every 60 s": lambda evidence: scraped_every(evidence, 60.0),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("starts", ["starts seen", "no starts"])
def test_thinned_metrics_give_the_offset_or_the_reason(recordings, variant, starts):
    settled = 0
    for name in CHOSEN:
        recording = recordings[name]
        evidence = VARIANTS[variant](recording.evidence)
        if starts == "no starts":
            evidence = without_starts(evidence)
        for seconds in SHIFTS:
            error = outcome(recording, shifted(evidence, seconds), seconds)
            if error is not None:
                settled += 1
                assert error <= 1.0, (name, seconds, error)
    print(f"{variant}, {starts}: {settled} of {len(CHOSEN) * len(SHIFTS)} settled")
    if starts == "starts seen":
        assert settled >= 0.7 * len(CHOSEN) * len(SHIFTS)


def test_traffic_alone_settles_most_recordings(recordings):
    settled = 0
    for recording in recordings.values():
        evidence = shifted(without_starts(recording.evidence), 3 * HOUR)
        error = outcome(recording, evidence, 3 * HOUR)
        if error is not None:
            settled += 1
            assert error <= 1.0, recording.name
    assert settled >= 24


def errors_of_lines(settled, truth):
    times = settled.evidence.events["stamp"].to_numpy()
    return np.abs(times - truth)


def moved_to(recording, instant):
    """Move both sides so that the middle of the log falls on an instant, and give its times."""
    evidence = recording.evidence
    stamps = evidence.events["stamp"].to_numpy()
    year = datetime.fromtimestamp(recording.first_metric, UTC).year
    real = stamps + (
        datetime(year, 1, 1, tzinfo=UTC).timestamp() - datetime(1972, 1, 1, tzinfo=UTC).timestamp()
    )
    # March to December of a common year lie a day earlier than in 1972, a leap year.
    real -= 86400.0
    assert abs(np.nanmin(real) - recording.first_metric) < 600.0
    delta = instant - float(np.nanmedian(real))
    facts = evidence.facts
    moved = replace(
        evidence,
        samples=evidence.samples.with_columns(
            pl.col("stamp") + delta,
            # What the server says of its start moves along.
            pl.when(pl.col("value") > 1e9).then(pl.col("value") + delta).otherwise(pl.col("value")),
        ),
        events=evidence.events.with_columns(pl.Series("stamp", as_printed(real + delta))),
        facts=facts.with_columns(
            pl.when(pl.col("clock") == "yearless")
            .then(pl.Series(as_printed(facts["stamp"].to_numpy() + (real - stamps)[0] + delta)))
            .otherwise(pl.col("stamp") + delta)
            .alias("stamp")
        ),
    )
    return moved, real + delta


def as_printed(real):
    """Drop the year, as vLLM does: seconds as if in 1972."""
    return np.array(
        [datetime.fromtimestamp(at, UTC).replace(year=1972).timestamp() for at in real.tolist()]
    )


@pytest.mark.parametrize("zone_h", [0.0, 9.0, -8.0])
def test_new_year_inside_the_window(recordings, zone_h):
    recording = recordings["b-preemption-cliff-v0112"]
    # The log's own clock passes New Year in its middle.
    midnight = datetime(2027, 1, 1, tzinfo=UTC).timestamp() - zone_h * HOUR
    evidence, truth = moved_to(recording, midnight)
    printed = as_printed(truth + zone_h * HOUR)
    evidence = replace(evidence, events=evidence.events.with_columns(pl.Series("stamp", printed)))
    settled = settle(evidence, map_engines(evidence))
    (note,) = settled.notes
    assert note.offset_s == pytest.approx(zone_h * HOUR, abs=recording.interval)
    assert note.year == 2026
    assert errors_of_lines(settled, truth).max() <= recording.interval


@pytest.mark.parametrize("starts", ["starts seen", "no starts"])
@pytest.mark.parametrize("change", [-HOUR, HOUR])
def test_clock_change_inside_the_window(recordings, change, starts):
    recording = recordings["b-preemption-cliff-v0112"]
    evidence = shifted(recording.evidence, 2 * HOUR)
    if starts == "no starts":
        evidence = without_starts(evidence)
    stamps = evidence.events["stamp"].to_numpy()
    middle = float(np.nanmedian(stamps))
    evidence = on_log(
        evidence,
        pl.when(pl.col("stamp") > middle).then(pl.col("stamp") + change).otherwise("stamp"),
    )
    settled = settle(evidence, map_engines(evidence))
    (note,) = settled.notes
    assert note.quality == "matched"
    assert note.offset_s == pytest.approx(2 * HOUR, abs=recording.interval)
    spacing = np.diff(settled.evidence.events["stamp"].to_numpy())
    assert np.abs(spacing - np.diff(stamps)).max() <= recording.interval


def test_full_dates_in_an_unknown_zone(recordings):
    recording = recordings["g-mixed-v032"]
    evidence, truth = moved_to(recording, datetime(2026, 6, 1, tzinfo=UTC).timestamp())
    local = pl.Series("stamp", truth + 9 * HOUR)
    evidence = replace(
        evidence,
        events=evidence.events.with_columns(local, pl.lit("local").alias("clock")),
        facts=evidence.facts.clear(),
    )
    settled = settle(evidence, map_engines(evidence))
    (note,) = settled.notes
    assert note.year is None
    assert errors_of_lines(settled, truth).max() <= recording.interval


def test_even_traffic_without_starts_is_not_determined(recordings):
    """Two seats always taken, nothing changes: no offset is better than another."""
    recording = recordings["h-sweep-v032/mns-064"]
    evidence = shifted(without_starts(scraped_every(recording.evidence, 60.0)), 3 * HOUR)
    (note,) = settle(evidence, map_engines(evidence)).notes
    assert note.offset_s is None
    assert note.quality == "undetermined"
    assert "give --tz" in note.how
