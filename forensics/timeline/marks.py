"""Single events of one engine → marks on the timeline: starts, resets, errors, changes."""

from collections.abc import Iterable

import polars as pl

from forensics.diary import EngineDiary, Epoch
from forensics.evidence import Place
from forensics.timeline.records import Mark

# Kind of line → (kind of mark, what it says in our own words).
_LINES: dict[str, tuple[str, str]] = {
    "cache_reset": ("reset", "prefix cache reset"),
    "cache_reset_http": ("reset", "prefix cache reset asked for"),
    "process_stop": ("stop", "server stopped"),
    "shutdown": ("stop", "shutdown under way"),
    "engine_death": ("engine_dead", "engine died"),
    "engine_death_exc": ("engine_dead", "engine error"),
    "oom": ("oom", "CUDA out of memory"),
    "kv_error": ("error", "KV cache does not fit"),
    "memory_error": ("error", "memory error at start"),
    "swap_error": ("error", "no swap space"),
    "kv_alloc_error": ("error", "KV cache allocation failed"),
    "sleep": ("sleep", "sleep or wake"),
    "ipc_stall": ("stall", "step takes over a minute"),
    "kv_load_failure": ("error", "KV load failed"),
    "preemption": ("preemption_warning", "preemption warning (every 50th is printed)"),
    "preemption_docs_form": ("preemption_warning", "preemption warning"),
    "blog_preempted": ("preemption_warning", "preemption line"),
    "traceback": ("error", "fatal error"),
    "stats_disabled": ("stats_disabled", "periodic stats are switched off"),
}
# Failures of a reset, and lines of a kind repeated beyond this, are not marked one by one.
_MOST_PER_KIND = 200
_SAME_STOP_S = 30.0


def marks_of(events: pl.DataFrame, diary: EngineDiary) -> tuple[Mark, ...]:
    """Collect the marks of one engine in order of time.

    Args:
        events: its events on UTC.
        diary: its epochs.
    """
    marks: list[Mark] = []
    known = events.filter(pl.col("kind").is_in(list(_LINES)) & pl.col("stamp").is_not_null())
    seen: dict[str, int] = {}
    last: dict[str, float] = {}
    rows = known.select("stamp", "source", "offset", "kind").sort(
        "stamp", "source", "offset", maintain_order=True
    )
    for stamp, source, offset, kind in rows.iter_rows():
        what, text = _LINES[kind]
        seen[kind] = seen.get(kind, 0) + 1
        # A stop prints a dozen lines at once: one mark; an error and what follows it stay apart.
        repeated = what == "stop" and stamp - last.get(what, float("-inf")) < _SAME_STOP_S
        last[what] = stamp
        if seen[kind] <= _MOST_PER_KIND and not repeated:
            marks.append(Mark(stamp, what, text, Place(source, offset)))
    for index, epoch in enumerate(diary.epochs):
        if epoch.start is None:
            continue
        place = epoch.model.place if epoch.model else epoch.pool.place
        kind, text = (
            ("start", "server start") if index == 0 else ("restart", "server started again")
        )
        marks.append(Mark(epoch.start, kind, text, place))
        if index:
            marks += _changes(diary.epochs[index - 1], epoch)
    return in_order(marks)


def in_order(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Sort marks by time, and within one second as in the log: it prints no fractions.

    Records on one physical line (pasted together, or ended by carriage returns) share its offset:
    they stay as they come.
    """
    return tuple(sorted(marks, key=_order))


def _order(mark: Mark) -> tuple[float, int, int]:
    place = mark.place
    if place is None or place.offset is None:
        return (mark.time, -1, 0)
    return (mark.time, place.source, place.offset)


def _changes(before: Epoch, after: Epoch) -> list[Mark]:
    """Give what a restart changed, as far as both epochs state it."""
    time = after.start or 0.0
    found: list[Mark] = []
    if before.version and after.version and before.version != after.version:
        found.append(
            Mark(time, "version_change", f"vLLM {before.version} to {after.version}", None)
        )
    pairs = (
        ("max_num_seqs", before.max_num_seqs, after.max_num_seqs),
        ("max_model_len", before.max_model_len, after.max_model_len),
        ("KV pool tokens", before.pool.tokens, after.pool.tokens),
        ("prefix caching", before.prefix_caching, after.prefix_caching),
    )
    for name, old, new in pairs:
        if old is not None and new is not None and old != new:
            place = after.pool.place if name.startswith("KV") else None
            found.append(Mark(time, "config_change", f"{name} {old} to {new}", place))
    return found
