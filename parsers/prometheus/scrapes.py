"""Gives the samples of `/metrics` text the time of the scrape they belong to.

A scrape begins at a time line, after ``# EOF``, or where a series comes a second time.
"""

import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

ASSUMED_INTERVAL_S = 15.0
"""Between scrapes of one file that nothing tells the times of: the interval most configurations of
Prometheus set. A guess; it is said in the note of the file. Ratios of counters do not depend on it.
"""

_WINDOW = 4096  # rows searched at once for the start of the next scrape

Names = npt.NDArray[np.int64]


@dataclass(slots=True)
class Scrapes:
    """The places where scrapes begin, by the number of samples read before.

    Attributes:
        borders: (samples read so far, time of the scrape that begins here or None).
    """

    borders: list[tuple[int, float | None]] = field(default_factory=list)

    def begin(self, samples_so_far: int, stamp: float | None) -> None:
        """Begin a scrape at a time line, or behind an end mark (no stamp)."""
        self.borders.append((samples_so_far, stamp))

    def stamps(self, names: Names, last: float | None) -> tuple[npt.NDArray[np.float64], bool]:
        """Give each sample the time of its scrape.

        Args:
            names: which series each sample is of, in the order of the text.
            last: when the last scrape was taken, if no line says so (name or mtime of the file).

        Returns:
            UTC seconds per sample, NaN where nothing tells them; and whether any were assumed.
        """
        starts = _starts(names, [at for at, _ in self.borders])
        times: list[float | None] = [None] * len(starts)
        for at, stamp in self.borders:
            if stamp is not None and at < len(names):
                times[int(np.searchsorted(starts, at, "right")) - 1] = stamp
        if last is not None and all(time is None for time in times):
            times[-1] = last
        known = [index for index, time in enumerate(times) if time is not None]
        assumed = 0 < len(known) < len(times)
        if assumed:
            _fill(times, known)
        lengths = np.diff(np.append(starts, len(names)))
        stamps = np.array([np.nan if time is None else time for time in times])
        return np.repeat(stamps, lengths), assumed


def _starts(names: Names, borders: list[int]) -> Names:
    """Return the row of the first sample of each scrape."""
    fixed = sorted({0, *(at for at in borders if at < len(names))})
    starts = []
    for start, stop in itertools.pairwise([*fixed, len(names)]):
        while start < stop:
            starts.append(start)
            start = _next_repeat(names, start, stop)
    return np.array(starts)


def _next_repeat(names: Names, start: int, stop: int) -> int:
    """Return the first row behind `start` whose series was seen since `start`."""
    again = stop
    for left in range(start + 1, stop, _WINDOW):
        same = names[left : min(left + _WINDOW, stop)] == names[start]
        hit = int(same.argmax())
        if same[hit]:
            again = left + hit
            break
    scrape = names[start:again]
    if np.bincount(scrape).max() > 1:  # another series comes again before the first one does
        order = np.argsort(scrape, kind="stable")
        repeats = order[1:][scrape[order[1:]] == scrape[order[:-1]]]
        return start + int(repeats.min())
    return again


def _fill(times: list[float | None], known: list[int]) -> None:
    """Fill unknown times evenly between known ones, and outside at the assumed interval."""
    settled = {index: time for index, time in enumerate(times) if time is not None}
    for left, right in itertools.pairwise(known):
        step = (settled[right] - settled[left]) / (right - left)
        for index in range(left + 1, right):
            times[index] = settled[left] + step * (index - left)
    first, final = known[0], known[-1]
    for index in range(first):
        times[index] = settled[first] - ASSUMED_INTERVAL_S * (first - index)
    for index in range(final + 1, len(times)):
        times[index] = settled[final] + ASSUMED_INTERVAL_S * (index - final)
