"""Evidence and timelines → Parquet files, for anyone's own SQL.

``samples`` (each point with the labels of its series), ``events``, ``facts`` and ``timeline`` (the
grid of every engine on UTC); ``sources`` says which file a source number means. Values stand as
exposed; only the timeline has meaning and unit of its vLLM version. What reports leave out is left
out here as well, and names have the stand-ins they have there.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import polars as pl

from forensics.analysis import Analysis
from forensics.config import Options
from forensics.errors import UsageError
from forensics.evidence import Evidence
from forensics.reports.redaction import replaced, stand_ins, without_quotes
from forensics.timeline import Timeline

SOURCES: dict[str, pl.DataType] = {
    "source": pl.UInt32(),
    "path": pl.String(),
    "stream": pl.String(),
    "origin": pl.String(),
}


_HOSTS = frozenset({"instance", "pod", "node", "host", "hostname", "nodename", "exported_instance"})
_MODELS = frozenset({"model_name", "model", "served_model_name"})
_TYPE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception)\b")
_ERROR = re.compile(r'"error":"')
_REQUEST_ID = re.compile(r'"request_ids?":"(?P<ids>[^"]+)"')


def export(
    evidence: Evidence, timeline: Timeline, folder: Path, analysis: Analysis, options: Options
) -> list[Path]:
    """Write the tables into a folder, made when it is not there; files of these names are replaced.

    Args:
        evidence: what was read.
        timeline: what became of it.
        folder: where to.
        analysis: made from them; its names have the same stand-ins here as in reports of it.
        options: whether prompts and names may be in the tables.

    Raises:
        UsageError: the folder cannot be written.
    """
    tables = {
        "sources": sources(evidence),
        "samples": samples(evidence),
        "events": evidence.events,
        "facts": evidence.facts,
        "timeline": grids(timeline),
    }
    if not options.include_prompts:
        tables["events"] = _changed(tables["events"], ("fields",), _without_quotes)
    if options.anonymize or options.confidential:
        names = stand_ins(analysis, _names(tables), _free_text(tables))
        tables = {
            name: _changed(table, _TEXTS[name], lambda text: replaced(text, names))
            for name, table in tables.items()
        }
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            path = folder / f"{name}.parquet"
            table.write_parquet(path, compression="zstd")
            written.append(path)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return written


_TEXTS = {
    "sources": ("path", "stream", "origin"),
    "samples": ("instance", "labels"),
    "events": ("instance", "fields"),
    "facts": ("instance", "value"),
    "timeline": ("instance",),
}


def _changed(
    table: pl.DataFrame, columns: tuple[str, ...], change: Callable[[str], str]
) -> pl.DataFrame:
    """Change the texts of some columns, each different one once."""
    for name in columns:
        known = table[name].unique().drop_nulls()
        new = pl.Series([change(text) for text in known.to_list()], dtype=pl.String)
        table = table.with_columns(pl.col(name).replace(known, new))
    return table


def _without_quotes(fields: str) -> str:
    if _ERROR.search(fields) is None:
        return fields
    held = orjson.loads(fields)
    if "request_id" in held:
        # Why a request failed can be all that was wrong with its prompt: the type will do.
        kind = _TYPE.match(held["error"])
        held["error"] = "…" if kind is None else kind[0]
    else:
        held["error"] = without_quotes(held["error"])
    return orjson.dumps(held).decode()


def _names(tables: dict[str, pl.DataFrame]) -> Iterator[tuple[str, str]]:
    """Yield the names that columns and fields are there for, with their kinds."""
    for table in tables.values():
        if "instance" in table.columns:
            yield from (("host", name) for name in table["instance"].unique().drop_nulls().sort())
    for labels in tables["samples"]["labels"].unique().drop_nulls().sort():
        for name, value in orjson.loads(labels).items():
            if name in _HOSTS or name in _MODELS:
                yield "host" if name in _HOSTS else "model", str(value)
    models = tables["facts"].filter(
        pl.col("key").str.contains(r"(?:^|\.)(?:model|tokenizer)(?:$|_)")
    )
    yield from (("model", name) for name in models["value"].unique().drop_nulls().sort())
    for fields in tables["events"]["fields"].unique().sort():
        match = _REQUEST_ID.search(fields)
        if match is not None:
            yield from (("request", name) for name in re.split(r",\s*", match["ids"]))


def _free_text(tables: dict[str, pl.DataFrame]) -> list[str]:
    return [
        *tables["sources"]["path"],
        *tables["facts"]["value"].unique().drop_nulls().sort(),
        *tables["samples"]["labels"].unique().drop_nulls().sort(),
    ]


def sources(evidence: Evidence) -> pl.DataFrame:
    """List the sources by number."""
    rows = [
        {"source": at, "path": info.path, "stream": info.stream, "origin": info.origin}
        for at, info in enumerate(evidence.sources)
    ]
    return pl.DataFrame(rows, schema=SOURCES)


def samples(evidence: Evidence) -> pl.DataFrame:
    """Put the labels of its series beside each point, so that one table can be asked."""
    joined = evidence.samples.join(evidence.series, on="series", how="left", maintain_order="left")
    first = [name for name in evidence.series.columns if name != "series"]
    return joined.select("series", *first, "stamp", "value")


def grids(timeline: Timeline) -> pl.DataFrame:
    """Stack the grids of all engines, each row with its engine and instance."""
    parts = [
        one.grid.with_columns(
            pl.lit(one.engine, pl.String).alias("engine"),
            pl.lit(one.instance, pl.String).alias("instance"),
        )
        for one in timeline.engines
    ]
    if not parts:
        return pl.DataFrame(schema={"engine": pl.String(), "instance": pl.String()})
    stacked = pl.concat(parts, how="diagonal")
    rest = [name for name in stacked.columns if name not in ("engine", "instance")]
    return stacked.select("engine", "instance", *rest)
