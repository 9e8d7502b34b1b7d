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
    Floats,
    Sorted,
    sort_lines,
    unquoted,
)
from parsers.vllm_log.header import Process, read_processes
from parsers.vllm_log.plain_stats import read_plain
from parsers.vllm_log.plain_steps import read_step
from parsers.vllm_log.records import Counted, Part, Plain, Who
from parsers.vllm_log.scanner import MAX_LINE_BYTES, Scanner
from parsers.vllm_log.texts import laid_out
from parsers.vllm_log.windows import Bools, Ints
from parsers.vllm_log.wrapped import Wrappers

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
        self._wrappers = Wrappers()

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
        return not self._skipping and not self.scanner.cut

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
        lines = sort_lines(self._buffer, end, self._wrappers, self.scanner.cut)
        self._lines(lines, end - lacking)
        self._drop(end)

    def _drop(self, end: int) -> None:
        """Move what lies behind `end` to the front."""
        rest = self._buffer[end : self._filled]
        self._offset += end - PAD
        self._filled = PAD + len(rest)
        self._buffer[PAD : self._filled] = rest

    def _lines(self, lines: Sorted, end: int) -> None:
        base = self._offset - PAD
        part = self.part
        instances = self._instances(lines)
        self._stats(lines, instances, base)
        part.counts_requests = self.count_requests
        if not self.count_requests:
            self._steps(lines, instances, base)
        before = part.last.copy()
        single = np.flatnonzero(lines.codes == 0)
        sizes = np.minimum(lines.ends[single] + 1, end) - lines.starts[single]
        part.matched_bytes += end - PAD - int(sizes.sum())
        clocks = self._singles(lines, instances, single, sizes, base)
        counted = np.flatnonzero(lines.codes > 0)
        if not len(counted):
            return
        part.lines += len(counted)
        part.matched += len(counted)
        own = ~np.isnan(lines.stamps)
        if len(part.instances) == 1:
            whose = np.broadcast_to(np.int64(0), counted.shape)
            stamps, carried = _carried(lines, clocks, own, counted, before.get(None))
        else:
            whose = instances[counted]
            stamps, carried = np.empty(len(counted)), np.empty(len(counted), np.int64)
            for name, number in part.instances.items():
                here = whose == number
                stamped = own & (instances == number)
                stamps[here], carried[here] = _carried(
                    lines, clocks, stamped, counted[here], before.get(name)
                )
        offsets = lines.starts[counted] + base
        outers = _outers(lines, counted)
        codes = lines.codes[counted]
        part.counted.append(Counted(offsets, carried, stamps, outers, whose, codes))

    def _instances(self, lines: Sorted) -> Ints:
        """Return for each line the number of its instance; 0 where that is not known."""
        numbers = [self.part.instance(owner[0]) for owner in self._wrappers.owners]
        if lines.owners is None:
            return np.zeros(len(lines.codes), np.int64)
        return np.array(numbers, np.int64)[np.maximum(lines.owners, 0)]

    def _stats(self, lines: Sorted, instances: Ints, base: int) -> None:
        """Read plain stats lines; those that are none are left to be read one by one."""
        chosen = np.flatnonzero(lines.codes == STATS)
        if not len(chosen):
            return
        lines.codes[chosen] = 0
        heads = lines.heads[chosen]
        prefixed = heads != lines.bodies[chosen]
        names = list(self.part.instances)
        for found in read_plain(self._buffer, heads + LOCATION, lines.tails[chosen]):
            whose = instances[chosen[found.lines]]
            whos = np.empty(len(found.lines), np.int64)
            for number in np.unique(whose).tolist():
                who = Who("yearless", names[number], found.engine, None, STATS_KIND)
                whos[whose == number] = self.part.number(who)
            for at in np.flatnonzero(prefixed[found.lines]).tolist():
                process = self._process(lines, int(chosen[found.lines[at]]))
                if process is not None:
                    engine = found.engine or process.engine
                    name = names[int(whose[at])]
                    who = Who("yearless", name, engine, process.name, STATS_KIND)
                    whos[at] = self.part.number(who)
            self._plain(lines, chosen[found.lines], whos, found.text, found.lengths, base)
        _unstamp(lines, chosen)

    def _process(self, lines: Sorted, line: int) -> Process | None:
        """Read the process prefixes of a line."""
        return read_processes(self._prefix(int(lines.bodies[line]), int(lines.heads[line])))

    def _prefix(self, begin: int, end: int) -> bytes:
        """Return the text of process prefixes, which may stand in a JSON string."""
        text = bytes(self._buffer[begin:end])
        return (unquoted(text) or text) if b"\\" in text else text

    def _steps(self, lines: Sorted, instances: Ints, base: int) -> None:
        """Make rows of plain request steps; the others are left to be read one by one."""
        received = np.flatnonzero(lines.codes == RECEIVED)
        lines.codes[received] = 0
        _unstamp(lines, received)
        chosen = np.flatnonzero((lines.codes >= ADDED) & (lines.codes <= FINISHED))
        buffer = self._buffer
        steps = [
            read_step(self._prefix(begin, head), buffer[head:end])
            for begin, head, end in zip(
                lines.bodies[chosen].tolist(),
                lines.heads[chosen].tolist(),
                lines.tails[chosen].tolist(),
                strict=True,
            )
        ]
        names = list(self.part.instances)
        whose = [names[number] for number in instances[chosen].tolist()]
        plain = [at for at, step in enumerate(steps) if step is not None]
        whos = [
            self.part.number(Who("yearless", name, *step[:3]))
            for name, step in zip(whose, steps, strict=True)
            if step is not None
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
        part.plain.append(Plain(offsets, stamps, _outers(lines, chosen), whos, text, lengths))
        part.lines += len(chosen)
        part.matched += len(chosen)
        lines.codes[chosen] = STATS

    def _singles(
        self, lines: Sorted, instances: Ints, single: Ints, sizes: Ints, base: int
    ) -> Ints:
        """Read the lines that are read one by one, in order, among the stamps of the others.

        Their stamps and instances are put among those; returns the clock of each stamp.
        """
        scanner, buffer, part = self.scanner, self._buffer, self.part
        clocks = np.full(len(lines.codes), _YEARLESS)
        runs = [_Stamps(lines, instances, *item, single) for item in enumerate(part.instances)]
        runs = [run for run in runs if len(run.stamps)]
        for order, (at, start, end, size) in enumerate(
            zip(
                single.tolist(),
                lines.starts[single].tolist(),
                lines.ends[single].tolist(),
                sizes.tolist(),
                strict=True,
            )
        ):
            for run in runs:
                run.tell(scanner, run.before[order])
            scanner.line(buffer[start:end], base + start, size)
            if scanner.stamped is not None:
                instance, clock, stamp = scanner.stamped
                clocks[at] = _CLOCK_CODES[clock]
                lines.stamps[at] = stamp
                instances[at] = part.instance(instance)
        for run in runs:
            run.tell(scanner, len(run.stamps))
        return clocks


class _Stamps:
    """The stamps of lines of one instance that are read in bulk.

    Attributes:
        before: how many of them stand before each line that is read by itself.
    """

    def __init__(
        self, lines: Sorted, instances: Ints, number: int, name: str | None, single: Ints
    ) -> None:
        places = np.flatnonzero(~np.isnan(lines.stamps) & (instances == number))
        self.stamps = lines.stamps[places]
        self.before: list[int] = np.searchsorted(places, single).tolist()
        self._name = name
        self._told = 0

    def tell(self, scanner: Scanner, upto: int) -> None:
        """Let a scanner know the first ones."""
        if upto > self._told:
            scanner.stamp(self._name, "yearless", float(self.stamps[self._told]))
            scanner.stamp(self._name, "yearless", float(self.stamps[upto - 1]))
            self._told = upto


def _carried(
    lines: Sorted, clocks: Ints, stamped: Bools, chosen: Ints, before: tuple[str, float] | None
) -> tuple[Floats, Ints]:
    """Return stamps and clocks of lines that have none: those of the last stamped line before."""
    clock, stamp = before or ("none", float("nan"))
    last = np.cumsum(stamped)[chosen]
    stamps: Floats = np.concatenate(([stamp], lines.stamps[stamped]))[last]
    return stamps, np.concatenate(([_CLOCK_CODES[clock]], clocks[stamped]))[last]


def _outers(lines: Sorted, chosen: Ints) -> Floats:
    """Return the wrappers' stamps of lines."""
    if lines.outers is None:
        return np.broadcast_to(np.float64("nan"), chosen.shape)
    return lines.outers[chosen]


def _unstamp(lines: Sorted, chosen: Ints) -> None:
    """Forget stamps of lines that are read one by one."""
    lines.stamps[chosen[lines.codes[chosen] == 0]] = np.nan
