"""Gives the samples of `/metrics` text the time of the scrape they belong to.

A scrape begins at a time line, after ``# EOF``, or where a series comes a second time.
"""

import itertools
from dataclasses import dataclass, field

ASSUMED_INTERVAL_S = 15.0
"""Between scrapes of one file that nothing tells the times of: the interval most configurations of
Prometheus set. A guess; it is said in the note of the file. Ratios of counters do not depend on it.
"""


@dataclass(slots=True)
class Scrapes:
    """The scrapes of one source, numbered from 0 in the order they stand in.

    Attributes:
        times: what is known of the time of each scrape.
    """

    times: list[float | None] = field(default_factory=lambda: [None])
    _seen: dict[int, int] = field(default_factory=dict)
    _empty: bool = True

    @property
    def current(self) -> int:
        """Return the number of the scrape that lines now belong to."""
        return len(self.times) - 1

    def saw(self, key: int) -> int:
        """Take notice of a sample of a series; return the number of its scrape."""
        if self._seen.get(key) == self.current:
            self.times.append(None)
        self._seen[key] = self.current
        self._empty = False
        return self.current

    def time_line(self, stamp: float) -> None:
        """Begin a scrape that was taken at a known time."""
        if not self._empty:
            self.times.append(None)
        self.times[-1] = stamp
        self._empty = True

    def end(self) -> None:
        """End the current scrape (``# EOF``)."""
        if not self._empty:
            self.times.append(None)
            self._empty = True

    def settled(self, last: float | None) -> tuple[list[float | None], bool]:
        """Return the time of each scrape, and whether any was assumed.

        Args:
            last: when the last scrape was taken, if no line says so (name or mtime of the file).
        """
        times = list(self.times)
        if self._empty and len(times) > 1 and times[-1] is None:
            times.pop()
        known = [index for index, time in enumerate(times) if time is not None]
        if not known:
            if last is None:
                return times, False
            times[-1] = last
            known = [len(times) - 1]
        assumed = len(known) < len(times)
        if assumed:
            _interpolate(times, known)
        return times, assumed


def _interpolate(times: list[float | None], known: list[int]) -> None:
    """Fill unknown times evenly between known ones, and outside at the assumed interval."""
    for left, right in itertools.pairwise(known):
        start, end = times[left] or 0.0, times[right] or 0.0
        for index in range(left + 1, right):
            times[index] = start + (end - start) * (index - left) / (right - left)
    first, final = known[0], known[-1]
    for index in range(first):
        times[index] = (times[first] or 0.0) - ASSUMED_INTERVAL_S * (first - index)
    for index in range(final + 1, len(times)):
        times[index] = (times[final] or 0.0) + ASSUMED_INTERVAL_S * (index - final)
