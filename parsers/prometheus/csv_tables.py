"""Reads CSV tables of samples: Grafana's "Inspect → Data" and VictoriaMetrics' `/export/csv`.

Grafana writes one column per series under its name (wide), or one row per sample with labels in
columns (long), with a header either way. VictoriaMetrics writes rows in an order the caller chose,
without a header: what a column holds is told by its content, and only when that is unmistakable.
"""

import csv
import io
import re
from collections.abc import Iterator
from typing import BinaryIO

from parsers.interface import Parsed, Progress, ReadOptions, Source
from parsers.prometheus.cells import labels_of, stamp_of, value_of
from parsers.prometheus.csv_layout import Layout, layout_of
from parsers.prometheus.labels import series_name
from parsers.prometheus.rows import Rows

_CSV_HINT = re.compile(rb"^(?:\xef\xbb\xbf)?(?:sep=.\r?\n)?[^\n]*[,;\t]", re.MULTILINE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_ROWS = 50
HEAD_BYTES = 64 << 10  # of `Source.head`; a longer text ends in the middle of a row
MAX_CELL_CHARS = 1 << 20


class CsvTable:
    """Tables of samples as CSV."""

    name = "metrics-csv"

    def recognises(self, source: Source) -> bool:
        """Tell by columns that hold times, values and series names."""
        if not _CSV_HINT.match(source.head) or b"\0" in source.head:
            return False
        return _layout(source.head) is not None

    def parse(self, source: Source, options: ReadOptions, progress: Progress) -> Parsed:
        """Read all rows of the source."""
        rows = Rows(source, options)
        layout = _layout(source.head)
        with source.open() as stream:
            if layout is None:
                rows.bytes = sum(map(len, stream))
                return rows.finish(self.name)
            reader = _Reader(rows, layout)
            for number, (offset, row) in enumerate(_rows(stream, layout.delimiter, rows)):
                reader.row(row, offset)
                if number % 10_000 == 0:
                    progress(source.path, rows.bytes, source.size or 0)
        reader.close()
        return rows.finish(self.name)


def _layout(head: bytes) -> Layout | None:
    """Find out what the columns of a table hold, from its first rows."""
    text = head.decode("utf-8-sig", "replace")
    if len(head) >= HEAD_BYTES:
        text = text[: text.rfind("\n") + 1]
    lines = text.splitlines()
    delimiter = None
    if lines and re.match(r"sep=.$", lines[0]):
        delimiter = lines[0][4]
        text = text.partition("\n")[2]
    for candidate in delimiter or ",;\t":
        rows = []
        try:
            for row in csv.reader(io.StringIO(text), delimiter=candidate):
                if row:
                    rows.append(row)
                if len(rows) > _SAMPLE_ROWS:
                    break
        except csv.Error:
            continue
        found = layout_of(rows, candidate)
        if found is not None:
            return found
    return None


def _rows(stream: BinaryIO, delimiter: str, rows: Rows) -> Iterator[tuple[int, list[str]]]:
    """Yield (offset, cells); a row that is no CSV is counted and the reading goes on."""
    csv.field_size_limit(MAX_CELL_CHARS)
    reader = csv.reader(_lines(stream, rows), delimiter=delimiter)
    while True:
        offset = rows.bytes
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            rows.damage(offset, "a row that is no CSV")
            continue
        yield offset, row


def _lines(stream: BinaryIO, rows: Rows) -> Iterator[str]:
    """Yield lines as text, keeping count of them."""
    for line in stream:
        start = 3 if rows.bytes == 0 and line.startswith(_BYTE_ORDER_MARK) else 0
        rows.lines += 1
        rows.bytes += len(line)
        yield line[start:].decode("utf-8", "replace").replace("\0", "")


class _Reader:
    """Puts the cells of rows where the layout says they belong."""

    def __init__(self, rows: Rows, layout: Layout) -> None:
        self._rows = rows
        self._layout = layout
        self._keys: dict[tuple[str, ...], int] = {}
        self._local = False
        self._named = layout.header == ()

    def row(self, row: list[str], offset: int) -> None:
        """Take one row."""
        rows, layout = self._rows, self._layout
        if not row or not any(cell.strip() for cell in row) or row[0].startswith("sep="):
            rows.ignored += 1
            return
        if not self._named and tuple(row) == layout.header:
            self._named = True
            rows.ignored += 1
            return
        stamp = stamp_of(row[layout.time]) if len(row) > layout.time else None
        if stamp is None:
            rows.damage(offset, "expected a row that has a time")
            return
        self._local = self._local or not stamp[1]
        taken = self._wide(row, stamp[0]) if layout.value is None else self._long(row, stamp[0])
        if taken:
            rows.matched += 1
        else:
            rows.damage(offset, "expected as many cells as columns, values being numbers")

    def _wide(self, row: list[str], stamp: float) -> bool:
        """Take a row of one time and a value per series."""
        whole = len(row) == len(self._layout.header)
        for index, cell in enumerate(row[: len(self._layout.header)]):
            if index != self._layout.time:
                title = self._layout.header[index]
                whole = self._point((title,), {}, title, stamp, cell) and whole
        return whole

    def _long(self, row: list[str], stamp: float) -> bool:
        """Take a row of one sample."""
        layout = self._layout
        if layout.value is None or len(row) <= max(layout.value, *layout.labels, -1):
            return False
        labels = {name: row[index] for index, name in layout.labels.items() if row[index]}
        title = row[layout.series] if layout.series is not None else None
        names = (title or "", *(f"{name}={text}" for name, text in labels.items()))
        return self._point(names, labels, title, stamp, row[layout.value])

    def _point(
        self,
        names: tuple[str, ...],
        labels: dict[str, str],
        title: str | None,
        stamp: float,
        cell: str,
    ) -> bool:
        """Add one point; False when its cell is no number."""
        try:
            value = value_of(cell)
        except ValueError:
            return False
        if value is None:
            return True
        key = self._keys.get(names)
        if key is None:
            titled = labels_of(title) if title else {}
            key = self._rows.key(series_name({**labels, **titled}), self._rows.bytes)
            self._keys[names] = key
        self._rows.add(key, stamp, value)
        return True

    def close(self) -> None:
        """Say what was inferred."""
        if self._local:
            self._rows.clock = "local"
            self._rows.notes.append(
                "times without a zone (a dashboard prints the browser's): "
                "export with formatting off to get UTC"
            )
        if not self._layout.header:
            self._rows.notes.append("the table has no header: columns were told by their content")
