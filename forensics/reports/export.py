"""Evidence and timelines → Parquet files, for anyone's own SQL.

``samples`` (each point with the labels of its series), ``events``, ``facts`` and ``timeline`` (the
grid of every engine on UTC); ``sources`` says which file a source number means. Values stand as
exposed; only the timeline has meaning and unit of its vLLM version.
"""

from pathlib import Path

import polars as pl

from forensics.errors import UsageError
from forensics.evidence import Evidence
from forensics.timeline import Timeline

SOURCES: dict[str, pl.DataType] = {
    "source": pl.UInt32(),
    "path": pl.String(),
    "stream": pl.String(),
    "origin": pl.String(),
}


def export(evidence: Evidence, timeline: Timeline, folder: Path) -> list[Path]:
    """Write the tables into a folder, made when it is not there; files of these names are replaced.

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
