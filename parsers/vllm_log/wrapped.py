"""Finds the records in wrapped lines, many lines at once.

The shape of the first line that wears a wrapper is read off it; the others are compared with that
eight bytes at a time, and their stamps are taken from where its stamp stands.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parsers.envelopes import unwrap
from parsers.envelopes.shapes import Shape, Stamp, shape_of
from parsers.vllm_log.literals import MAX_LITERALS, Literal
from parsers.vllm_log.windows import Bools, Bytes, Ints, columns_of, window

Floats = npt.NDArray[np.float64]
Owner = tuple[str | None, str | None]

MAX_TRIES = 1000  # lines of a chunk that wear nothing known, before the rest is read one by one

_WRAPPED = np.zeros(256, np.bool_)  # what wrapped lines begin with
_WRAPPED[list(b"0123456789ABCDEFGHJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz[{<")] = True
_RECORD = np.zeros(256, np.bool_)  # what records begin with, and no wrapper inside another
_RECORD[list(b"DIWECFT( \x1b\\")] = True
_MAY_CUT = re.compile(rb"\{|std(?:out|err) P")
_HEAD_BYTES = 300


class Wrapped(NamedTuple):
    """Lines of a chunk without their wrappers.

    Attributes:
        bodies / tails: where the record and its process prefixes begin and end; those of the line
            where it wears no known wrapper.
        quoted: which records are JSON strings.
        outers: the wrappers' stamps; NaN for none.
        owners: per line a number of `Wrappers.owners`; -1 where that is not known.
        single: lines to be read one by one: a runtime cut them, or the one before them.
    """

    bodies: Ints
    tails: Ints
    quoted: Bools
    outers: Floats
    owners: Ints
    single: Ints


class Wrappers:
    """The shapes of wrappers in one log.

    Attributes:
        owners: instances and streams that were seen; the first is that of bare lines.
    """

    def __init__(self) -> None:
        self.owners: list[Owner] = [(None, None)]
        self._shapes: list[Shape] = []

    def take(
        self,
        buffer: bytearray,
        begins: Bytes,
        starts: Ints,
        tails: Ints,
        cut: Collection[Owner],
    ) -> Wrapped | None:
        """Take wrappers off lines; None if none of them wears one that is known.

        Args:
            buffer: has more than `shapes.MAX_BYTES` before and behind the lines.
            begins: the first byte of each line.
            starts: where the lines begin.
            tails: where they end, without line ends.
            cut: whose last line before these was cut.
        """
        # Most lines of most logs are bare records.
        odd = np.flatnonzero((begins != 73) & (begins != 40) & (begins != 27))
        left = odd[_WRAPPED[begins[odd]]]
        if not len(left):
            return None
        count = len(starts)
        lines = Wrapped(
            starts.copy(),
            tails.copy(),
            np.zeros(count, np.bool_),
            np.full(count, np.nan),
            np.where(_WRAPPED[begins], -1, 0),
            np.empty(0, np.int64),
        )
        used: dict[Shape, int] = {}
        known = self._shapes
        cuts = [(-1, self._number(owner)) for owner in cut]
        tries = MAX_TRIES
        while len(left) and tries and len(used) < MAX_LITERALS:
            first = int(left[0])
            new = None if known else shape_of(bytes(buffer[starts[first] : tails[first]]))
            shape = known.pop(0) if known else new
            if shape is None:
                tries -= 1
                left = left[1:]
                continue
            same = self._take_off(shape, buffer, lines, left)
            if same.any():
                used[shape] = int(same.sum())
            if shape.cut:
                owner = self._number((shape.instance, shape.stream))
                cuts += [(at, owner) for at in left[same].tolist()]
            if new is not None:
                same[0] = True  # also if it does not fit itself: its stamp is out of range
            left = left[~same]
        self._shapes = sorted(used, key=lambda shape: -used[shape])
        if not used:
            return None
        return lines._replace(single=self._singles(buffer, lines, cuts))

    def _take_off(self, shape: Shape, buffer: bytearray, lines: Wrapped, chosen: Ints) -> Bools:
        """Take a shape off those of the chosen lines that have it; tell which."""
        data: Bytes = np.frombuffer(buffer, np.uint8)
        stamp = shape.stamp
        starts, tails = lines.bodies[chosen], lines.tails[chosen]
        bodies, ends = starts + len(shape.before), tails - len(shape.behind)
        same = (bodies <= ends) & _RECORD[data[bodies]]
        same &= _has(buffer, starts, shape.before, None if stamp is None or stamp.behind else stamp)
        if shape.behind:
            same &= _has(buffer, ends, shape.behind, stamp if stamp and stamp.behind else None)
            if shape.behind.startswith(b'"'):
                # A line feed at the end of the record would be a part of the shape.
                same &= (data[ends - 2] != 92) | (data[ends - 1] != 110)
        if stamp is not None:
            at = np.flatnonzero(same)
            good, outers = _stamps(buffer, (ends if stamp.behind else starts)[at] + stamp.at, stamp)
            same[at] = good
            lines.outers[chosen[same]] = outers[good]
        hit = chosen[same]
        lines.bodies[hit] = bodies[same]
        lines.tails[hit] = ends[same]
        lines.quoted[hit] = shape.quoted
        lines.owners[hit] = self._number((shape.instance, shape.stream))
        return same

    def _number(self, owner: Owner) -> int:
        if owner not in self.owners:
            self.owners.append(owner)
        return self.owners.index(owner)

    def _singles(self, buffer: bytearray, lines: Wrapped, cuts: list[tuple[int, int]]) -> Ints:
        """Return which lines are to be read one by one: what was cut, and what follows it."""
        for at in np.flatnonzero(lines.owners < 0).tolist():
            begin, end = int(lines.bodies[at]), int(lines.tails[at])
            if _MAY_CUT.search(buffer, begin, min(end, begin + _HEAD_BYTES)):
                found = unwrap(buffer[begin:end].decode(errors="replace"))
                cuts += [(at, self._number(one.cut_from)) for one in found if one.partial]
        single = {at for at, _ in cuts if at >= 0}
        own = {owner: np.flatnonzero(lines.owners == owner) for _, owner in cuts}
        for at, owner in cuts:
            behind = int(np.searchsorted(own[owner], at, side="right"))
            single.update(own[owner][behind : behind + 1].tolist())
        return np.array(sorted(single), np.int64)


def _has(buffer: bytearray, places: Ints, text: bytes, stamp: Stamp | None) -> Bools:
    """Tell where a text stands, but for the digits of a stamp."""
    mask = bytearray(b"\xff" * len(text))
    if stamp is not None:
        mask[stamp.at : stamp.at + 2] = mask[stamp.at + 3 : stamp.at + 5] = bytes(2)
        if stamp.digits:
            mask[stamp.at + 6 : stamp.at + 6 + stamp.digits] = bytes(stamp.digits)
    columns = columns_of(window(buffer, places, -(-len(text) // 8) * 8))
    return Literal(text, 0, 0, bytes(mask)).on(columns)


def _stamps(buffer: bytearray, places: Ints, stamp: Stamp) -> tuple[Bools, Floats]:
    """Read stamps whose minutes begin at the places; tell which are some."""
    text = window(buffer, places, 24)
    clock = text[:, (0, 1, 3, 4)] - np.uint8(48)  # what is below "0" wraps round to above 9
    good = (clock <= 9).all(1) & (clock[:, 0] <= 5) & (clock[:, 2] <= 5)
    fraction = text[:, 6 : 6 + stamp.digits] - np.uint8(48)
    good &= (fraction <= 9).all(1)
    if stamp.hour is None:
        return good, np.full(len(places), np.nan)
    # In the order of `dated`, so that they are the same to the last bit.
    stamps = stamp.hour + clock @ np.array((600.0, 60.0, 10.0, 1.0))
    if stamp.digits:
        powers = 10.0 ** np.arange(stamp.digits - 1, -1, -1)
        stamps = stamps + fraction @ powers / 10.0**stamp.digits
    return good, stamps - stamp.shift
