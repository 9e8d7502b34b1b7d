"""Tables of benchmark results → rows of a sweep, by the titles of their columns.

A plain table has a column for the batch and some of hit rate, TTFT and throughput; as JSON it is
one object per row with the same names. guidellm's CSV has a header over several rows, aiperf's one
row per metric.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

from forensics.ceiling.records import SweepRow

_DELIMITERS = (",", ";", "\t", "|")
_SETTING = re.compile(
    r"^(max[ _]?concurrency|max[ _]?num[ _]?seqs|(?:request[ _])?concurrency(?: .*(?:mean|avg))?"
    r"|batch(?:[ _]size)?|streams|clients|users|concurrent[ _]requests)$"
)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,18})(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?")


def table_rows(text: str, hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    """Give (name of the setting, row) for each line of a delimited table."""
    first = text.lstrip().split("\n", 1)[0]
    try:
        rows = list(csv.reader(text.splitlines(), delimiter=max(_DELIMITERS, key=first.count)))
    except csv.Error:
        # A field without end: no table, and so without rows like any other file.
        return
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return
    if rows[0][0].strip().lower() == "metric":
        yield from _metric_rows(rows, hint)
        return
    # guidellm writes its header over several rows: all rows before the first with figures.
    depth = next((at for at, row in enumerate(rows) if _figures(row) >= 2), len(rows))
    if depth in (0, len(rows)) or depth > 4:
        return
    header = [_title(rows[:depth], place) for place in range(max(map(len, rows[:depth])))]
    yield from _under(header, rows[depth:], hint)


def object_rows(
    records: Sequence[Mapping[str, object]], hint: float | None
) -> Iterator[tuple[str, SweepRow]]:
    """Give (name of the setting, row) for JSON objects whose names are titles of columns."""
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [
        ["" if record.get(name) is None else str(record[name]) for name in names]
        for record in records
    ]
    yield from _under([_title([names], place) for place in range(len(names))], rows, hint)


def _under(
    header: Sequence[str], rows: Sequence[Sequence[str]], hint: float | None
) -> Iterator[tuple[str, SweepRow]]:
    at = {name: _column(header, name) for name in _COLUMNS}
    setting = next((i for i, title in enumerate(header) if _SETTING.match(title)), None)
    if all(place is None for place in at.values()):
        return
    percent = {name for name in _SHARES if _in_percent(header, rows, at[name])}
    for row in rows:
        value = _cell(row, setting)
        value = value if value is not None else hint
        if value is None:
            continue
        name = header[setting].replace(" ", "_") if setting is not None else "setting"
        yield name, _row_of(row, header, at, value, percent)


def _row_of(
    row: Sequence[str],
    header: Sequence[str],
    at: Mapping[str, int | None],
    setting: float,
    percent: set[str],
) -> SweepRow:
    def seconds(name: str) -> float | None:
        place, value = at[name], _cell(row, at[name])
        if place is None or value is None:
            return None
        return value / 1000 if re.search(r"\bms\b", header[place]) else value

    def share(name: str) -> float | None:
        value = _cell(row, at[name])
        return value / 100 if value is not None and name in percent else value

    return SweepRow(
        setting=setting,
        hit_rate=share("hit_rate"),
        ttft_p50_s=seconds("ttft_p50"),
        ttft_p99_s=seconds("ttft_p99"),
        throughput_tok_s=_cell(row, at["throughput"]),
        preemptions=_cell(row, at["preemptions"]),
        kv_usage=share("kv_usage"),
        requests=_cell(row, at["requests"]),
    )


def _in_percent(header: Sequence[str], rows: Sequence[Sequence[str]], place: int | None) -> bool:
    """Whether a column of shares runs to 100: told by its title, a sign, or a value above one."""
    if place is None:
        return False
    cells = [row[place] for row in rows if place < len(row)]
    return "%" in header[place] or any("%" in cell or (parsed(cell) or 0) > 1 for cell in cells)


def _metric_rows(rows: list[list[str]], hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    """Read aiperf's and genai-perf's CSV: one row per metric, then one value per row."""
    if hint is None:
        return
    columns = [cell.strip().lower() for cell in rows[0]]
    by_metric = {row[0].strip().lower(): row for row in rows[1:]}
    waits = next((by_metric[k] for k in by_metric if k.startswith("time to first token")), None)
    if waits is None:
        return
    rate = next(
        (by_metric[k] for k in by_metric if k.startswith("output token throughput (")), None
    )
    place = {name: columns.index(name) if name in columns else None for name in ("p50", "p99")}
    yield (
        "concurrency",
        SweepRow(
            setting=hint,
            ttft_p50_s=thousandth(_cell(waits, place["p50"])),
            ttft_p99_s=thousandth(_cell(waits, place["p99"])),
            throughput_tok_s=_cell(rate, 1) if rate else None,
        ),
    )


_SHARES = ("hit_rate", "kv_usage")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    # In order: the first pattern that matches a title wins.
    "hit_rate": (r"\bhit rate\b", r"\bcache hits?\b"),
    "ttft_p50": (
        r"(?=.*\b(ttft|time to first token)\b)(?=.*\b(p50|median)\b)",
        r"(?=.*\b(ttft|time to first token)\b)(?=.*\b(mean|avg)\b)",
    ),
    "ttft_p99": (r"(?=.*\b(ttft|time to first token)\b)(?=.*\bp99\b)",),
    "throughput": (
        r"^output throughput$",
        r"(?=.*\boutput tok(en)?s?\b)(?=.*\b(second|throughput|s)\b)(?!.*\b(std|p\d+|median)\b)",
        r"^(throughput|tok s|tokens s|throughput tok s|tokens per second)$",
    ),
    "preemptions": (r"\bpreemptions?\b",),
    "kv_usage": (r"\b(kv|cache) usage\b",),
    "requests": (r"^(completed|requests|successful requests)\b",),
}


def _column(header: Sequence[str], name: str) -> int | None:
    for pattern in _COLUMNS[name]:
        for place, title in enumerate(header):
            if re.search(pattern, title):
                return place
    return None


def _title(rows: Sequence[Sequence[str]], place: int) -> str:
    words = " ".join(row[place] for row in rows if place < len(row))
    return " ".join(re.sub(r"[^a-z0-9%.]+", " ", words.lower()).split())


def _figures(row: Sequence[str]) -> int:
    return sum(1 for cell in row if parsed(cell) is not None)


def _cell(row: Sequence[str], place: int | None) -> float | None:
    return parsed(row[place]) if place is not None and place < len(row) else None


def parsed(text: str) -> float | None:
    """Return the number in a cell; a comma only parts thousands, a decimal comma is no number."""
    plain = text.strip().removesuffix("%").strip()
    return float(plain.replace(",", "")) if _NUMBER.fullmatch(plain) else None


def thousandth(value: float | None) -> float | None:
    """Return milliseconds as seconds."""
    return None if value is None else value / 1000
