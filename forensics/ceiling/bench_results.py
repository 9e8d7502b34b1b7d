"""Result files of benchmark tools → rows of a sweep.

Read are: `vllm bench serve --save-result` (JSON, appended JSON lines), `vllm bench sweep`
(summary.csv, summary.json), guidellm (JSON, CSV), aiperf and genai-perf (JSON, CSV), and plain
tables with a column for the batch and some of hit rate, TTFT and throughput. Anything else gives
no rows: nothing is guessed from a file that is none of these.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from forensics.ceiling.records import SweepRow
from forensics.errors import InputError

MAX_BYTES = 256_000_000
"""Result files with all requests in detail reach some tens of megabytes; more is not one."""

Record = Mapping[str, object]
_SETTING = re.compile(
    r"^(max[ _]?concurrency|max[ _]?num[ _]?seqs|(?:request[ _])?concurrency(?: .*(?:mean|avg))?"
    r"|batch(?:[ _]size)?|streams|clients|users|concurrent[ _]requests)$"
)
_IN_PATH = re.compile(
    r"(?:concurrency|conc|mns|max[-_]?num[-_]?seqs|batch|bs|streams|users|c)[-_=]?0*(\d+)(?![\d.])"
)


def read_results(path: Path) -> Iterator[tuple[str, SweepRow]]:
    """Give (name of the setting, row) for each run in a result file.

    Raises:
        InputError: the file cannot be read at all.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError("too large for the result of a benchmark", str(path))
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from error
    hint = _hint(path)
    if text.lstrip()[:1] in ("{", "["):
        for record in _documents(text):
            yield from _record(record, hint)
    else:
        yield from _table(list(csv.reader(text.splitlines())), hint)


def _documents(text: str) -> Iterator[Record]:
    try:
        parsed = [json.loads(text)]
    except ValueError:
        # Results that were appended stand one per line.
        parsed = []
        for line in text.splitlines():
            try:
                parsed.append(json.loads(line))
            except ValueError:
                continue
    for document in parsed:
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict):
                yield item


def _record(record: Record, hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    benchmarks = record.get("benchmarks")
    if isinstance(benchmarks, list):
        for item in benchmarks:
            if isinstance(item, dict):
                yield from _guidellm(item, hint)
    elif isinstance(record.get("time_to_first_token"), dict):
        yield from _aiperf(record, hint)
    elif "output_throughput" in record or "median_ttft_ms" in record:
        yield from _vllm(record, hint)


def _vllm(record: Record, hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    name, setting = "max_concurrency", _number(record.get("max_concurrency"))
    if setting is None:
        seats = record.get("max_num_seqs", record.get("max-num-seqs"))
        name, setting = "max_num_seqs", _number(seats)
    if setting is None and hint is None:
        name, setting = "request_rate", _number(record.get("request_rate"))
    setting = setting if setting is not None else hint
    if setting is None or setting == float("inf"):
        return
    median = _number(record.get("median_ttft_ms", record.get("p50_ttft_ms")))
    tail = _number(record.get("p99_ttft_ms"))
    yield (
        name,
        SweepRow(
            setting=setting,
            ttft_p50_s=_thousandth(median),
            ttft_p99_s=_thousandth(tail),
            throughput_tok_s=_number(record.get("output_throughput")),
            requests=_number(record.get("completed")),
        ),
    )


def _guidellm(item: Record, hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    metrics = _inner(item, "metrics")
    waits = _inner(metrics, "time_to_first_token_ms", "successful")
    if not waits:
        return
    strategy = (
        _inner(item, "config", "strategy")
        or _inner(item, "args", "strategy")
        or _inner(item, "scheduler", "strategy")
    )
    streams = strategy.get("streams", strategy.get("max_concurrency"))
    setting = _number(streams)
    if setting is None:
        setting = _number(_inner(metrics, "request_concurrency", "successful").get("mean"))
    setting = setting if setting is not None else hint
    if setting is None:
        return
    percentiles = _inner(waits, "percentiles")
    middle = waits.get("median", percentiles.get("p50"))
    rate = _inner(metrics, "output_tokens_per_second", "successful").get("mean")
    if rate is None:
        rate = _inner(metrics, "output_tokens_per_second", "total").get("mean")
    yield (
        "concurrency",
        SweepRow(
            setting=setting,
            ttft_p50_s=_thousandth(_number(middle)),
            ttft_p99_s=_thousandth(_number(percentiles.get("p99"))),
            throughput_tok_s=_number(rate),
            requests=_number(_inner(metrics, "request_totals").get("successful")),
        ),
    )


def _aiperf(record: Record, hint: float | None) -> Iterator[tuple[str, SweepRow]]:
    waits = _inner(record, "time_to_first_token")
    setting = _number(_inner(record, "input_config", "loadgen").get("concurrency"))
    if setting is None:
        perf = _inner(record, "input_config", "perf_analyzer", "stimulus")
        setting = _number(perf.get("concurrency"))
    setting = setting if setting is not None else hint
    if setting is None:
        return
    scale = 1e-3 if str(waits.get("unit", "ms")).startswith("ms") else 1.0
    middle, tail = _number(waits.get("p50")), _number(waits.get("p99"))
    yield (
        "concurrency",
        SweepRow(
            setting=setting,
            ttft_p50_s=None if middle is None else middle * scale,
            ttft_p99_s=None if tail is None else tail * scale,
            throughput_tok_s=_number(_inner(record, "output_token_throughput").get("avg")),
            requests=_number(_inner(record, "request_count").get("avg")),
        ),
    )


def _table(rows: list[list[str]], hint: float | None) -> Iterator[tuple[str, SweepRow]]:
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
    at = {name: _column(header, name) for name in _COLUMNS}
    setting = next((i for i, title in enumerate(header) if _SETTING.match(title)), None)
    if all(place is None for place in at.values()):
        return
    for row in rows[depth:]:
        value = _cell(row, setting)
        value = value if value is not None else hint
        if value is None:
            continue
        name = header[setting].replace(" ", "_") if setting is not None else "setting"
        yield name, _row_of(row, header, at, value)


def _row_of(
    row: Sequence[str], header: Sequence[str], at: Mapping[str, int | None], setting: float
) -> SweepRow:
    def seconds(name: str) -> float | None:
        place, value = at[name], _cell(row, at[name])
        if place is None or value is None:
            return None
        return value / 1000 if re.search(r"\bms\b", header[place]) else value

    rate, place = _cell(row, at["hit_rate"]), at["hit_rate"]
    if rate is not None and place is not None and (rate > 1 or "%" in header[place]):
        rate /= 100
    return SweepRow(
        setting=setting,
        hit_rate=rate,
        ttft_p50_s=seconds("ttft_p50"),
        ttft_p99_s=seconds("ttft_p99"),
        throughput_tok_s=_cell(row, at["throughput"]),
        preemptions=_cell(row, at["preemptions"]),
        kv_usage=_cell(row, at["kv_usage"]),
        requests=_cell(row, at["requests"]),
    )


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
            ttft_p50_s=_thousandth(_cell(waits, place["p50"])),
            ttft_p99_s=_thousandth(_cell(waits, place["p99"])),
            throughput_tok_s=_cell(rate, 1) if rate else None,
        ),
    )


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
    return sum(1 for cell in row if _parse(cell) is not None)


def _cell(row: Sequence[str], place: int | None) -> float | None:
    return _parse(row[place]) if place is not None and place < len(row) else None


def _parse(text: str) -> float | None:
    plain = text.strip().replace(",", "").removesuffix("%").strip()
    if not re.fullmatch(r"[-+]?\d{1,18}(\.\d{1,18})?([eE][-+]?\d{1,3})?", plain):
        return None
    return float(plain)


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return float(value)
    return None


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000


def _inner(record: Record, *keys: str) -> Record:
    found: object = record
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _hint(path: Path) -> float | None:
    """Return the setting a file or its folder is named after: ``c32.json``, ``mns-064/``."""
    for part in (path.stem, path.parent.name):
        matches = _IN_PATH.findall(part.lower())
        if matches:
            return float(matches[-1])
    return None
