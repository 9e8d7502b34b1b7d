"""Places → file and line, or file, series and time, for all that will be shown at once."""

from collections.abc import Iterable

from forensics.analysis import Where
from forensics.evidence import Evidence, Place
from parsers.lines import Line, locate


class Places:
    """Resolves places; each source is read again at most once per batch."""

    def __init__(self, evidence: Evidence, *, confidential: bool) -> None:
        self._evidence = evidence
        self._confidential = confidential
        self._lines: dict[tuple[int, int], Line] = {}

    def prepare(self, places: Iterable[Place | None]) -> None:
        """Look up the lines of all log places in one pass per source."""
        wanted: dict[int, set[int]] = {}
        for place in places:
            if place is not None and place.series is None and place.offset is not None:
                wanted.setdefault(place.source, set()).add(place.offset)
        for source, offsets in sorted(wanted.items()):
            fresh = {offset for offset in offsets if (source, offset) not in self._lines}
            for offset, line in locate(self._evidence.sources[source], fresh).items():
                self._lines[(source, offset)] = line

    def where(self, place: Place | None) -> Where | None:
        """Give a place for people; None stays None."""
        if place is None:
            return None
        path = self._evidence.sources[place.source].path
        if place.series is not None:
            return Where(path, series=place.series, time=place.time)
        line = self._lines.get((place.source, place.offset)) if place.offset is not None else None
        if line is None:
            return Where(path)
        return Where(path, line=line.number, text=None if self._confidential else line.text)

    def line_of(self, source: int, offset: int) -> int:
        """Give a line number, 0 when it is not known."""
        line = self._lines.get((source, offset))
        return line.number if line else 0
