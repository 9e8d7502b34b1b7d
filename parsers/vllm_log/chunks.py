"""Reads a log chunk by chunk: the bulk of its lines many at a time, the others one by one.

Bytes are read into one buffer, over and over; what is left of a line at its end moves to its front.
"""

from typing import Protocol

import numpy as np

from forensics.clocks import CLOCKS
from parsers.vllm_log.bulk import (
    ADDED,
    FINISHED,
    LOCATION,
    PAD,
    RECEIVED,
    STATS,
    Sorted,
    sort_lines,
)
from parsers.vllm_log.header import read_processes
from parsers.vllm_log.plain_stats import read_plain
from parsers.vllm_log.plain_steps import read_step
from parsers.vllm_log.records import Counted, Part, Plain, Who
from parsers.vllm_log.scanner import MAX_LINE_BYTES, Scanner
from parsers.vllm_log.texts import laid_out
from parsers.vllm_log.windows import Ints

CHUNK_BYTES = 4 << 20

STATS_KIND = "stats_periodic"
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
                self._take(self._filled, lacking=1)
            return False
        self.size += got
        self._filled += got
        if self._skipping:
            self._skip()
        end = self._buffer.rfind(b"\n", PAD, self._filled) + 1
        if end:
            self._take(end)
        elif self._filled - PAD > MAX_LINE_BYTES:
            self.scanner.overlong(self._offset, self._filled - PAD)
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
        end = end or self._filled
        self.part.damaged_bytes += end - PAD
        self._drop(end)

    def _take(self, end: int, lacking: int = 0) -> None:
        """Read the lines up to `end`; the last one lacks that many bytes in the source."""
        lines = sort_lines(self._buffer, end)
        sizes = lines.ends - lines.starts + 1
        sizes[-1] -= lacking
        self._lines(lines, sizes)
        self._drop(end)

    def _drop(self, end: int) -> None:
        """Move what lies behind `end` to the front."""
        rest = self._buffer[end : self._filled]
        self._offset += end - PAD
        self._filled = PAD + len(rest)
        self._buffer[PAD : self._filled] = rest

    def _lines(self, lines: Sorted, sizes: Ints) -> None:
        base = self._offset - PAD
        self._stats(lines, base)
        self.part.counts_requests = self.count_requests
        if not self.count_requests:
            self._steps(lines, base)
        before = self.part.last.get(None, ("none", float("nan")))
        clocks = self._singles(lines, sizes, base)
        self.part.matched_bytes += int(sizes[lines.codes != 0].sum())
        counted = np.flatnonzero(lines.codes > 0)
        if not len(counted):
            return
        self.part.lines += len(counted)
        self.part.matched += len(counted)
        # Lines that have no stamp carry the last one before them.
        own = ~np.isnan(lines.stamps)
        last = np.cumsum(own)[counted]
        stamps = np.concatenate(([before[1]], lines.stamps[own]))[last]
        clocks = np.concatenate(([_CLOCK_CODES[before[0]]], clocks[own]))[last]
        offsets = lines.starts[counted] + base
        self.part.counted.append(Counted(offsets, clocks, stamps, lines.codes[counted]))

    def _stats(self, lines: Sorted, base: int) -> None:
        """Read plain stats lines; those that are none are left to be read one by one."""
        chosen = np.flatnonzero(lines.codes == STATS)
        if not len(chosen):
            return
        lines.codes[chosen] = 0
        heads = lines.heads[chosen]
        prefixed = heads != lines.starts[chosen]
        for found in read_plain(self._buffer, heads + LOCATION, lines.tails[chosen]):
            number = self.part.number(Who("yearless", None, found.engine, None, STATS_KIND))
            whos = np.full(len(found.lines), number)
            for at in np.flatnonzero(prefixed[found.lines]).tolist():
                line = chosen[found.lines[at]]
                process = read_processes(
                    bytes(self._buffer[lines.starts[line] : lines.heads[line]])
                )
                if process is not None:
                    engine = found.engine or process.engine
                    who = Who("yearless", None, engine, process.name, STATS_KIND)
                    whos[at] = self.part.number(who)
            self._plain(lines, chosen[found.lines], whos, found.text, found.lengths, base)
        _unstamp(lines, chosen)

    def _steps(self, lines: Sorted, base: int) -> None:
        """Make rows of plain request steps; the others are left to be read one by one."""
        received = np.flatnonzero(lines.codes == RECEIVED)
        lines.codes[received] = 0
        _unstamp(lines, received)
        chosen = np.flatnonzero((lines.codes >= ADDED) & (lines.codes <= FINISHED))
        buffer = self._buffer
        steps = [
            read_step(buffer[start:head], buffer[head:end])
            for start, head, end in zip(
                lines.starts[chosen].tolist(),
                lines.heads[chosen].tolist(),
                lines.ends[chosen].tolist(),
                strict=True,
            )
        ]
        plain = [at for at, step in enumerate(steps) if step is not None]
        whos = [
            self.part.number(Who("yearless", None, *step[:3])) for step in steps if step is not None
        ]
        text, _, lengths = laid_out([step[3].encode() for step in steps if step is not None])
        lines.codes[chosen] = 0
        self._plain(lines, chosen[plain], np.array(whos, np.int64), text, lengths, base)
        _unstamp(lines, chosen)

    def _plain(
        self, lines: Sorted, chosen: Ints, whos: Ints, text: bytes, lengths: Ints, base: int
    ) -> None:
        """Keep lines as rows."""
        part = self.part
        offsets, stamps = lines.starts[chosen] + base, lines.stamps[chosen]
        part.plain.append(Plain(offsets, stamps, whos, text, lengths))
        part.lines += len(chosen)
        part.matched += len(chosen)
        lines.codes[chosen] = STATS

    def _singles(self, lines: Sorted, sizes: Ints, base: int) -> Ints:
        """Read the lines that are read one by one, in order, among the stamps of the others.

        Their stamps are put among those; returns the clock of each stamp.
        """
        scanner, buffer, part = self.scanner, self._buffer, self.part
        clocks = np.full(len(lines.codes), _YEARLESS)
        bulk = np.flatnonzero(~np.isnan(lines.stamps))
        single = np.flatnonzero(lines.codes == 0)
        fast = np.searchsorted(bulk, single).tolist()
        seen = 0
        bulk_stamps = lines.stamps[bulk]
        for at, start, end, size, before in zip(
            single.tolist(),
            lines.starts[single].tolist(),
            lines.ends[single].tolist(),
            sizes[single].tolist(),
            fast,
            strict=True,
        ):
            if before > seen:
                scanner.stamp(None, "yearless", float(bulk_stamps[seen]))
                scanner.stamp(None, "yearless", float(bulk_stamps[before - 1]))
                seen = before
            last = part.last.get(None)
            scanner.line(buffer[start:end], base + start, size)
            now = part.last.get(None)
            if now is not None and now is not last:
                clocks[at] = _CLOCK_CODES[now[0]]
                lines.stamps[at] = now[1]
        if len(bulk) > seen:
            scanner.stamp(None, "yearless", float(bulk_stamps[seen]))
            scanner.stamp(None, "yearless", float(bulk_stamps[-1]))
        return clocks


def _unstamp(lines: Sorted, chosen: Ints) -> None:
    """Forget stamps of lines that are read one by one."""
    lines.stamps[chosen[lines.codes[chosen] == 0]] = np.nan
