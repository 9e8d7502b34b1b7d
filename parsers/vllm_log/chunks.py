"""Reads a log chunk by chunk: the bulk of its lines many at a time, the others one by one."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from forensics.evidence import CLOCKS
from parsers.vllm_log.bulk import STATS, Floats, Ints, Sorted, padded, sort_lines
from parsers.vllm_log.records import Counted, Part
from parsers.vllm_log.scanner import MAX_LINE_BYTES, Scanner

CHUNK_BYTES = 4 << 20
INTERVAL_S = 10.0  # the default interval of V1's stats lines

_YEARLESS = CLOCKS.index("yearless")
_CLOCK_CODES = {clock: code for code, clock in enumerate(CLOCKS)}


class Readable(Protocol):
    """Anything bytes can be read from."""

    def read(self, count: int, /) -> bytes:
        """Read up to `count` bytes; none at the end."""


def chunks(stream: Readable) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, whole lines) from a stream; of an overlong line only what shows that it is."""
    offset = 0
    held = b""
    while data := stream.read(CHUNK_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            whole = held + data[:end] if held else data[:end]
            yield offset, whole
            offset += len(whole)
            held = data[end:]
        elif len(held) <= MAX_LINE_BYTES:
            held += data
        else:
            offset += len(data)
    if held:
        yield offset, held


class ChunkReader:
    """Reads chunks of whole lines into one `Part`.

    Args:
        count_requests: count request steps instead of keeping each as a row.
    """

    def __init__(self, *, count_requests: bool) -> None:
        self.scanner = Scanner()
        self.count_requests = count_requests

    @property
    def part(self) -> Part:
        """What was read so far."""
        return self.scanner.part

    def read(self, data: bytes, offset: int) -> None:
        """Read a chunk of whole lines that starts at `offset`; the last may lack its line feed."""
        if not data:
            return
        buffer = padded(data if data.endswith(b"\n") else data + b"\n")
        lines = sort_lines(buffer, requests=self.count_requests)
        base = offset - int(lines.starts[0])
        counted = np.flatnonzero(lines.codes > 0)
        before = self.part.last.get(None)
        known, clocks, ends = self._singles(buffer, base, lines)
        if len(counted):
            self.part.lines += len(counted)
            self.part.matched += len(counted)
            carried = _Carried(known, clocks, before)
            self.part.counted.append(_grouped(lines, counted, carried, known, ends, base))

    def _singles(self, buffer: bytes, base: int, lines: Sorted) -> tuple[Floats, Ints, Ints]:
        """Read the lines that are read one by one, in order, among the stamps of the others.

        Returns:
            Per line its own stamp (NaN for none) and clock; and where stats lines are.
        """
        scanner = self.scanner
        known = lines.stamps.copy()
        clocks = np.full(len(known), _YEARLESS)
        ends: list[int] = []
        fast = np.maximum.accumulate(np.where(np.isnan(known), -1, np.arange(len(known))))
        single = np.flatnonzero(lines.codes <= 0)
        seen = -1
        stats = scanner.stats_lines
        for at, code, start, head, end, stamped in zip(
            single.tolist(),
            lines.codes[single].tolist(),
            lines.starts[single].tolist(),
            lines.heads[single].tolist(),
            lines.ends[single].tolist(),
            fast[single].tolist(),
            strict=True,
        ):
            if stamped > seen:
                seen = stamped
                scanner.stamp(None, "yearless", float(known[stamped]))
            if code != STATS or not scanner.plain_stats(buffer, start, head, end, base):
                scanner.line(buffer[start:end], base + start)
            if scanner.stamped is not None:
                clock, known[at] = scanner.stamped
                clocks[at] = _CLOCK_CODES[clock]
                if scanner.stats_lines != stats:
                    stats = scanner.stats_lines
                    ends.append(at)
        if len(fast) and fast[-1] > seen:
            scanner.stamp(None, "yearless", float(lines.stamps[fast[-1]]))
        return known, clocks, np.array(ends, np.int64)


class _Carried:
    """Stamps of lines that have none: the last one before each."""

    def __init__(self, known: Floats, clocks: Ints, before: tuple[str, float] | None) -> None:
        clock, stamp = before or ("none", float("nan"))
        places = np.arange(len(known))
        last = np.maximum.accumulate(np.where(np.isnan(known), -1, places))
        found = last >= 0
        self.stamps = np.where(found, known[last], stamp)
        self.clocks = np.where(found, clocks[last], CLOCKS.index(clock))


def _grouped(
    lines: Sorted, counted: Ints, carried: _Carried, known: Floats, ends: Ints, base: int
) -> Counted:
    """Add up counted lines that will fall into one interval anyway.

    Behind a stats line of this chunk the interval is known; before the first, lines of one stamp
    are added up only.
    """
    stamps = carried.stamps[counted]
    intervals = np.searchsorted(ends, counted)
    begun = np.concatenate(([np.nan], known[ends]))[intervals]
    slots = np.where(np.isnan(begun), stamps, np.floor((stamps - begun) / INTERVAL_S))
    codes = lines.codes[counted]
    whole = np.nan_to_num(slots, nan=-1.0).astype(np.int64)
    keys = (intervals << 46) ^ ((whole & 0x3FFFFFFFF) << 12 | codes)
    _, first, sizes = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, sizes = first[order], sizes[order]
    return Counted(
        offsets=lines.starts[counted[first]] + base,
        clocks=carried.clocks[counted[first]],
        stamps=stamps[first],
        codes=codes[first],
        lines=sizes,
    )
