"""Evidence and diary → one clock, one grid per engine, meaning by version."""

from forensics.timeline.records import (
    SIGNALS,
    ClockNote,
    EngineTimeline,
    Histogram,
    Mark,
    Origin,
    Timeline,
)

__all__ = ["SIGNALS", "ClockNote", "EngineTimeline", "Histogram", "Mark", "Origin", "Timeline"]
