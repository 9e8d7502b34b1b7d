"""Reads a log chunk by chunk: the bulk of its lines many at a time, the others one by one.

Bytes are read into one buffer, over and over; what is left of a line at its end moves to its front.
"""

from itertools import compress
from typing import Protocol

import numpy as np

from forensics.evidence import CLOCKS
from parsers.vllm_log.bulk import (
    ADDED,
    FINISHED,
    PAD,
    RECEIVED,
    STATS,
    Floats,
    Sorted,
    sort_lines,
)
from parsers.vllm_log.literals import Ints
from parsers.vllm_log.plain_stats import read_plain
from parsers.vllm_log.plain_steps import read_step
from parsers.vllm_log.records import Counted, Part
from parsers.vllm_log.scanner import MAX_LINE_BYTES, Scanner

CHUNK_BYTES = 4 << 20
INTERVAL_S = 10.0  # the default interval of V1's stats lines

_YEARLESS = CLOCKS.index("yearless")
_CLOCK_CODES = {clock: code for code, clock in enumerate(CLOCKS)}


class Readable(Protocol):
    """Anything bytes can be read from."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer; 0 at the end."""


class ChunkReader:
    """Reads a stream of lines into one `Part`.

    Args:
        offset: where in the source the stream begins.
        count_requests: count request steps instead of keeping each as a row.
        chunk_bytes: how much is read at once.

    Attributes:
        size: bytes read so far.
    """

    def __init__(
        self, *, offset: int = 0, count_requests: bool, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self.scanner = Scanner()
        self.count_requests = count_requests
        self.size = 0
        self._offset = offset  # of the first byte in the buffer
        self._buffer = bytearray(PAD + chunk_bytes + PAD)
        self._filled = PAD
        self._skipping = False

    @property
    def part(self) -> Part:
        """What was read so far."""
        return self.scanner.part

    def next_part(self) -> Part:
        """Return what was read so far and begin a new part."""
        part, self.scanner.part = self.scanner.part, Part()
        return part

    @property
    def between_lines(self) -> bool:
        """Whether reading may go on elsewhere: in no line that is skipped or that was cut."""
        return not self._skipping and not self.scanner.holds_cut_lines

    def rest(self) -> tuple[int, bytes]:
        """Return the beginning of a line that was read last, and its offset."""
        return self._offset, bytes(self._buffer[PAD : self._filled])

    def fill(self, stream: Readable) -> bool:
        """Read some more of the stream and the lines that are whole now; False at its end."""
        view = memoryview(self._buffer)[self._filled : len(self._buffer) - PAD]
        got = stream.readinto(view) or 0
        view.release()
        if not got:
            if self._filled > PAD:
                # The last line may lack its line feed.
                self._buffer[self._filled] = 10
                self._filled += 1
                self._take(self._filled)
            return False
        self.size += got
        self._filled += got
        if self._skipping:
            self._skip()
        end = self._buffer.rfind(b"\n", PAD, self._filled) + 1
        if end:
            self._take(end)
        elif self._filled - PAD > MAX_LINE_BYTES:
            self.scanner.overlong(self._offset)
            self._skipping = True
            self._offset += self._filled - PAD
            self._filled = PAD
        elif self._filled == len(self._buffer) - PAD:
            self._buffer += bytes(CHUNK_BYTES)
        return True

    def _skip(self) -> None:
        """Drop the rest of an overlong line."""
        end = self._buffer.find(b"\n", PAD, self._filled) + 1
        self._skipping = not end
        self._drop(end or self._filled)

    def _take(self, end: int) -> None:
        """Read the lines up to `end`."""
        self._lines(end)
        self._drop(end)

    def _drop(self, end: int) -> None:
        """Move what lies behind `end` to the front."""
        rest = self._buffer[end : self._filled]
        self._offset += end - PAD
        self._filled = PAD + len(rest)
        self._buffer[PAD : self._filled] = rest

    def _lines(self, end: int) -> None:
        lines = sort_lines(self._buffer, end)
        base = self._offset - PAD
        plain = self._stats(lines, base)
        if not self.count_requests:
            self._steps(lines, base)
        single = np.flatnonzero(lines.codes == 0)
        before = self.part.last.get(None)
        known, clocks, ends = self._singles(lines, single, base)
        ends = np.union1d(ends, plain) if len(ends) else plain
        counted = np.flatnonzero(lines.codes > 0)
        if len(counted):
            self.part.lines += len(counted)
            self.part.matched += len(counted)
            carried = _Carried(known, clocks, before)
            self.part.counted.append(_grouped(lines, counted, carried, known, ends, base))

    def _stats(self, lines: Sorted, base: int) -> Ints:
        """Read plain stats lines; those that are none are left to be read one by one."""
        chosen = np.flatnonzero(lines.codes == STATS)
        if not len(chosen):
            return chosen
        buffer = self._buffer
        starts = lines.starts[chosen].tolist()
        texts = [
            buffer[start:end]
            for start, end in zip(starts, lines.ends[chosen].tolist(), strict=True)
        ]
        found = read_plain(texts)
        good = np.array([who is not None for who in found.whos], np.bool_)
        lines.codes[chosen[~good]] = 0
        lines.stamps[chosen[~good]] = np.nan
        part = self.part
        rows, kept = part.plain, good.tolist()
        count = int(np.count_nonzero(good))
        rows.offsets += (lines.starts[chosen[good]] + base).tolist()
        rows.stamps += lines.stamps[chosen[good]].tolist()
        rows.whos += [who for who, keep in zip(found.whos, kept, strict=True) if keep and who]
        rows.kinds += ["stats_periodic"] * count
        rows.fields += compress(found.fields, kept)
        part.lines += count
        part.matched += count
        return chosen[good]

    def _steps(self, lines: Sorted, base: int) -> None:
        """Make rows of plain request steps; the others are left to be read one by one."""
        steps = lines.codes * (lines.codes <= FINISHED)
        received = np.flatnonzero(steps == RECEIVED)
        lines.codes[received] = 0
        lines.stamps[received] = np.nan
        chosen = np.flatnonzero(steps >= ADDED)
        buffer, part = self._buffer, self.part
        for at, start, head, end in zip(
            chosen.tolist(),
            lines.starts[chosen].tolist(),
            lines.heads[chosen].tolist(),
            lines.ends[chosen].tolist(),
            strict=True,
        ):
            step = read_step(buffer[start:head], buffer[head:end])
            if step is None:
                lines.codes[at] = 0
                lines.stamps[at] = np.nan
                continue
            lines.codes[at] = STATS
            engine, process, kind, fields = step
            part.plain.offsets.append(base + start)
            part.plain.stamps.append(float(lines.stamps[at]))
            part.plain.whos.append((engine, process))
            part.plain.kinds.append(kind)
            part.plain.fields.append(fields)
            part.lines += 1
            part.matched += 1

    def _singles(self, lines: Sorted, single: Ints, base: int) -> tuple[Floats, Ints, Ints]:
        """Read the lines that are read one by one, in order, among the stamps of the others.

        Returns:
            Per line its own stamp (NaN for none) and clock; and where stats lines are.
        """
        scanner, buffer = self.scanner, self._buffer
        known = lines.stamps.copy()
        clocks = np.full(len(known), _YEARLESS)
        ends: list[int] = []
        bulk = np.flatnonzero(~np.isnan(known))
        fast = np.concatenate(([-1], bulk))[np.searchsorted(bulk, single)]
        seen = -1
        stats = scanner.stats_lines
        for at, start, end, stamped in zip(
            single.tolist(),
            lines.starts[single].tolist(),
            lines.ends[single].tolist(),
            fast.tolist(),
            strict=True,
        ):
            if stamped > seen:
                if seen < 0:
                    scanner.stamp(None, "yearless", float(known[bulk[0]]))
                seen = stamped
                scanner.stamp(None, "yearless", float(known[stamped]))
            scanner.line(buffer[start:end], base + start)
            if scanner.stamped is not None:
                clock, known[at] = scanner.stamped
                clocks[at] = _CLOCK_CODES[clock]
                if scanner.stats_lines != stats:
                    stats = scanner.stats_lines
                    ends.append(at)
        if len(bulk) and bulk[-1] > seen:
            if seen < 0:
                scanner.stamp(None, "yearless", float(known[bulk[0]]))
            scanner.stamp(None, "yearless", float(lines.stamps[bulk[-1]]))
        return known, clocks, np.array(ends, np.int64)


class _Carried:
    """Stamps of lines that have none: the last one before each."""

    def __init__(self, known: Floats, clocks: Ints, before: tuple[str, float] | None) -> None:
        clock, stamp = before or ("none", float("nan"))
        own = ~np.isnan(known)
        last = np.cumsum(own)
        self.stamps = np.concatenate(([stamp], known[own]))[last]
        self.clocks = np.concatenate(([_CLOCK_CODES[clock]], clocks[own]))[last]


def _grouped(
    lines: Sorted, counted: Ints, carried: _Carried, known: Floats, ends: Ints, base: int
) -> Counted:
    """Add up counted lines that will fall into one interval anyway.

    Behind a stats line of this chunk the interval is known; before the first, lines of one stamp
    are added up only.
    """
    stamps = carried.stamps[counted]
    ended = np.zeros(len(known), np.int64)
    ended[ends] = 1
    intervals = np.cumsum(ended)[counted]
    begun = np.concatenate(([np.nan], known[ends]))[intervals]
    # With no stamp or no interval known the comparison is false and the stamp itself is the slot.
    slots = np.where(begun == begun, np.floor((stamps - begun) / INTERVAL_S), stamps)
    codes = lines.codes[counted]
    whole = np.where(slots == slots, slots, -1.0).astype(np.int64)
    first, sizes = _first_and_count((intervals << 34) + whole, codes)
    return Counted(
        offsets=lines.starts[counted[first]] + base,
        clocks=carried.clocks[counted[first]],
        stamps=stamps[first],
        codes=codes[first],
        lines=sizes,
    )


def _first_and_count(intervals: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """Group by interval and code; return where each group first occurs, in order, and its size.

    Intervals mostly come one after another, so they are numbered by their changes; what comes back
    to an earlier one makes a further group, which is added to its interval later.
    """
    change = np.concatenate(([True], intervals[1:] != intervals[:-1]))
    numbers = np.cumsum(change) - 1
    kinds = np.flatnonzero(np.bincount(codes))
    dense = np.zeros(int(kinds[-1]) + 1, np.int64)
    dense[kinds] = np.arange(len(kinds))
    keys = numbers * len(kinds) + dense[codes]
    sizes = np.bincount(keys)
    first = np.zeros(len(sizes), np.int64)
    first[keys[::-1]] = np.arange(len(keys))[::-1]
    taken = np.flatnonzero(sizes)
    order = taken[np.argsort(first[taken], kind="stable")]
    return first[order], sizes[order]
