"""The best hit rate that was seen → the class of workload it is typical of.

A class is read from measured reuse, never from the name of a service; and from the best level only,
because a workload of nine tenths reuse that is being evicted shows a low rate as well. Ranges are
those of batch-ceiling.md, section 8; between them no class is named.
"""

from forensics.catalog.messages import Message
from rules.interface import Case, Exhibit

ONE_OFF = 0.1
"""Share of prompt tokens up to which documents are one-off: a larger batch is the lever there."""
_CLASSES = (
    (0.7, 1.0, "note.class_shared"),
    (0.4, 0.6, "note.class_code"),
    (0.0, ONE_OFF, "note.class_one_off"),
)
# Points of a stretch whose mean counts as a level (diagnosis.md 3.3: segments of 8 scrapes).
_STRETCH = 8


def best_rate(case: Case) -> float | None:
    """Give the best mean hit rate of any stretch; None when the data hold no full stretch."""
    rates = case.timeline.grid["hit_rate"].drop_nulls()
    if rates.len() < _STRETCH:
        return None
    best = rates.rolling_mean(_STRETCH).max()
    return float(best) if isinstance(best, int | float) else None


def workload(case: Case) -> tuple[Exhibit, ...]:
    """Show which class the traffic is of, and for a fall what it looks like since; () between."""
    level = case.episode.before if case.episode is not None else best_rate(case)
    if level is None:
        return ()
    key = next((name for low, high, name in _CLASSES if low <= level <= high), None)
    if key is None:
        return ()
    time = case.episode.onset[0] if case.episode is not None else case.window[1]
    place = case.timeline.place("hit_rate", time)
    return (Exhibit("shared_prompt_share", None, level, "ratio", place, Message(key)),)
