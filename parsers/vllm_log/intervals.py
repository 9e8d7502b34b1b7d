"""Turns counted lines into counts: one per stats interval, status and class of path.

An interval ends with a stats line that has a new stamp (several engines print theirs with the same
one), and where the server prints none (idle, `--api-server-count` above 1) after ten seconds.
Access lines carry no stamp of their own; where a wrapper stamps them, an interval ends with its
minute, so that a server whose stats lines stopped is still seen to answer.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.windows import Bools, Ints

Floats = npt.NDArray[np.float64]

INTERVAL_S = 10.0  # the default interval of V1's stats lines
_WRAPPED_S = 60.0
_NO_SLOT = -(1 << 62)  # of a line without stamp
_TABLE = 1 << 20  # largest table of numbers that is kept instead of sorting them


class Tallies(NamedTuple):
    """Counted lines in columns, ordered by offset.

    `clocks` index `CLOCKS`, `instances` a list of names beside it; `codes` are those of
    `bulk.label_of`. NaN stands for an unknown stamp.
    """

    offsets: Ints
    clocks: Ints
    stamps: Floats
    outers: Floats
    instances: Ints
    codes: Ints
    lines: Ints

    def at(self, chosen: Ints | Bools | slice) -> "Tallies":
        """Return some of them."""
        return Tallies._make(column[chosen] for column in self)


class Ends(NamedTuple):
    """Stats lines that end an interval, in columns, ordered by offset."""

    offsets: Ints
    instances: Ints
    stamps: Floats

    def at(self, chosen: Ints | Bools) -> "Ends":
        """Return some of them."""
        return Ends._make(column[chosen] for column in self)


def joined_tallies(pieces: Sequence[Tallies]) -> Tallies:
    """Stack tallies and put them in the order of their offsets."""
    together = Tallies._make(map(np.concatenate, zip(*pieces, strict=True)))
    if (together.offsets[1:] >= together.offsets[:-1]).all():
        return together
    return together.at(np.argsort(together.offsets, kind="stable"))


def new_stamps(pieces: Iterable[Ends]) -> Ends:
    """Stack ends in the order of their offsets; keep those whose stamp is new to their instance."""
    ends = Ends._make(map(np.concatenate, zip(*pieces, strict=True)))
    order = np.argsort(ends.offsets, kind="stable")
    order = order[np.argsort(ends.instances[order], kind="stable")]
    stamps, instances = ends.stamps[order], ends.instances[order]
    new = np.ones(len(order), np.bool_)
    same = (stamps[1:] == stamps[:-1]) | (np.isnan(stamps[1:]) & np.isnan(stamps[:-1]))
    new[1:] = ~same | (instances[1:] != instances[:-1])
    kept = order[new]
    return ends.at(kept[np.argsort(ends.offsets[kept], kind="stable")])


def divided(tallies: Tallies, ends: Ends) -> tuple[Tallies, Tallies]:
    """Divide tallies into those of intervals that begin and end inside this stretch, and others.

    The first end may repeat the stamp of one in the stretch before, so only the second one surely
    begins an interval.
    """
    if not tallies.instances.any() and not ends.instances.any():
        if len(ends.offsets) < 3:
            return tallies.at(slice(0)), tallies
        first, last = np.searchsorted(tallies.offsets, ends.offsets[[1, -1]]).tolist()
        outside = (tallies.at(slice(first)), tallies.at(slice(last, None)))
        return tallies.at(slice(first, last)), joined_tallies(outside)
    here = np.zeros(len(tallies.offsets), np.bool_)
    for instance in np.flatnonzero(np.bincount(ends.instances) >= 3):
        own = ends.offsets[ends.instances == instance]
        inside = (tallies.offsets >= own[1]) & (tallies.offsets < own[-1])
        here |= inside & (tallies.instances == instance)
    return tallies.at(here), tallies.at(~here)


def border(ends: Ends) -> Ends:
    """Return the ends that matter to tallies that are not settled: two first and the last one."""
    kept: list[Ints] = []
    for instance in np.flatnonzero(np.bincount(ends.instances)):
        own = np.flatnonzero(ends.instances == instance)
        kept.append(own if len(own) < 4 else own[[0, 1, -1]])
    return ends.at(np.sort(np.concatenate(kept))) if kept else ends


def counted(tallies: Tallies, ends: Ends) -> Tallies:
    """Add up tallies of one interval, instance, status and path class; the first stands for all."""
    if not len(tallies.offsets):
        return tallies
    number, begun = _intervals(tallies, ends)
    since = tallies.stamps - begun
    since = np.where(np.isnan(since), tallies.stamps, since)
    slots = np.nan_to_num(np.floor(since / INTERVAL_S), nan=_NO_SLOT).astype(np.int64)
    return _summed(tallies, number, _minutes(tallies, slots))


def gathered(tallies: Tallies, ends: Ends) -> Tallies:
    """Add up tallies that fall into one interval whatever precedes them and follows."""
    if not len(tallies.offsets):
        return tallies
    number, _ = _intervals(tallies, ends)
    stamps = np.ascontiguousarray(tallies.stamps).view(np.int64)
    return _summed(tallies, number, _minutes(tallies, stamps))


def _minutes(tallies: Tallies, slots: Ints) -> Ints:
    """Return the slots of tallies, for those that a wrapper stamps a negative one: its minute."""
    wrapped = ~np.isnan(tallies.outers)
    if not wrapped.any():
        return slots
    minutes = np.floor(tallies.outers[wrapped] / _WRAPPED_S).astype(np.int64)
    slots = slots.copy()
    slots[wrapped] = _NO_SLOT + 1 + minutes
    return slots


def _summed(tallies: Tallies, number: Ints, slots: Ints) -> Tallies:
    """Add up tallies of one instance, number, slot and code, in the order of the first of each."""
    # Lines of one interval mostly follow each other, so runs of them are sorted, not lines.
    first = np.ones(len(number), np.bool_)
    first[1:] = (number[1:] != number[:-1]) | (slots[1:] != slots[:-1])
    if tallies.instances.any():
        first[1:] |= tallies.instances[1:] != tallies.instances[:-1]
    runs = np.flatnonzero(first)
    _, slot = dense(slots[runs])
    _, who = dense(number[runs] * (int(tallies.instances.max()) + 1) + tallies.instances[runs])
    _, run = dense(who * (int(slot.max()) + 1) + slot)
    kinds, code = dense(tallies.codes)
    keys = np.repeat(run, np.diff(runs, append=len(number))) * len(kinds) + code
    _, keys = dense(keys)
    single = (tallies.lines == 1).all()
    sizes = np.bincount(keys, None if single else tallies.lines).astype(np.int64)
    places = np.empty(len(sizes), np.int64)
    places[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    # Several records of one line have the same offset, so the order is that of the places.
    order = np.argsort(places)
    return tallies.at(places[order])._replace(lines=sizes[order])


def _intervals(tallies: Tallies, ends: Ends) -> tuple[Ints, Floats]:
    """Return for each tally the number of the end before it, 0 for none, and its stamp."""
    stamps = np.concatenate(([np.nan], ends.stamps))
    if not tallies.instances.any() and not ends.instances.any():
        # Ends are fewer than tallies.
        borders = np.searchsorted(tallies.offsets, ends.offsets)
        spans = np.diff(borders, prepend=0, append=len(tallies.offsets))
        return np.repeat(np.arange(len(spans)), spans), np.repeat(stamps, spans)
    number = np.zeros(len(tallies.offsets), np.int64)
    for instance in np.flatnonzero(np.bincount(ends.instances)):
        own = np.concatenate(([-1], np.flatnonzero(ends.instances == instance)))
        here = np.flatnonzero(tallies.instances == instance)
        before = np.searchsorted(ends.offsets[own[1:]], tallies.offsets[here], side="right")
        number[here] = own[before] + 1
    return number, stamps[number]


def dense(values: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values in order and, for each value, its place among them."""
    lowest = int(values.min())
    span = int(values.max()) - lowest + 1
    if span > max(_TABLE, 4 * len(values)):
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places
    table = np.zeros(span, np.int64)
    shifted = values - lowest
    table[shifted] = 1
    present = np.flatnonzero(table)
    table[present] = np.arange(len(present))
    return present + lowest, table[shifted]
