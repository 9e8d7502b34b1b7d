"""Result files of benchmark tools → rows of a sweep.

Read are: `vllm bench serve --save-result` (JSON, appended JSON lines), `vllm bench sweep`
(summary.csv, summary.json), guidellm (JSON, CSV), aiperf and genai-perf (JSON, CSV), and plain
tables with a column for the batch and some of hit rate, TTFT and throughput. Anything else gives
no rows: nothing is guessed from a file that is none of these.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from forensics.ceiling.bench_tables import object_rows, parsed, table_rows, thousandth
from forensics.ceiling.records import SweepRow
from forensics.errors import InputError

MAX_BYTES = 256_000_000
"""Result files with all requests in detail reach some tens of megabytes; more is not one."""

Record = Mapping[str, object]
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
        plain: list[Record] = []
        for record in _documents(text):
            rows = list(_record(record, hint))
            yield from rows
            plain += [] if rows else [record]
        yield from object_rows(plain, hint)
    else:
        yield from table_rows(text, hint)


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
    # What the tool does not measure may have been added to its record by hand.
    added = next((row for _, row in object_rows([record], setting)), SweepRow(setting))
    median = _number(record.get("median_ttft_ms", record.get("p50_ttft_ms")))
    tail = _number(record.get("p99_ttft_ms"))
    yield (
        name,
        SweepRow(
            setting=setting,
            hit_rate=added.hit_rate,
            ttft_p50_s=thousandth(median),
            ttft_p99_s=thousandth(tail),
            throughput_tok_s=_number(record.get("output_throughput")),
            preemptions=added.preemptions,
            kv_usage=added.kv_usage,
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
            ttft_p50_s=thousandth(_number(middle)),
            ttft_p99_s=thousandth(_number(percentiles.get("p99"))),
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


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return parsed(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return float(value)
    return None


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
