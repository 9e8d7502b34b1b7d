"""Turns counted lines into events: one per stats interval, status and class of path.

An interval ends with a stats line that has a new stamp (several engines print theirs with the same
one), and where the server prints none (idle, `--api-server-count` above 1) after ten seconds.
Access lines carry no stamp of their own; where a wrapper stamps them, an interval ends with its
minute, so that a server whose stats lines stopped is still seen to answer.
"""

import polars as pl

from forensics.evidence import EVENTS
from parsers.vllm_log.bulk import label_of
from parsers.vllm_log.chunks import INTERVAL_S

_WRAPPED_S = 60.0
TALLIES: dict[str, pl.DataType] = {
    "offset": pl.UInt64(),
    "clock": pl.String(),
    "stamp": pl.Float64(),
    "outer": pl.Float64(),
    "instance": pl.String(),
    "code": pl.Int64(),  # what was counted; see `bulk.label_of`
    "lines": pl.UInt64(),
}
ENDS: dict[str, pl.DataType] = {
    "offset": pl.UInt64(),
    "instance": pl.String(),
    "stamp": pl.Float64(),
}


def interval_ends(events: pl.DataFrame) -> pl.DataFrame:
    """Return the stats lines that end an interval; schema ENDS, ordered by offset."""
    return new_stamps(events.filter(pl.col("kind") == "stats_periodic").select(list(ENDS)))


def new_stamps(ends: pl.DataFrame) -> pl.DataFrame:
    """Keep per instance those whose stamp is not that of the one before."""
    ordered = ends.sort("offset")
    if ordered["instance"].null_count() == ordered.height:
        new = pl.col("stamp").ne_missing(pl.col("stamp").shift(1))
        first = pl.int_range(pl.len()) == 0
    else:
        new = pl.col("stamp").ne_missing(pl.col("stamp").shift(1).over("instance"))
        first = pl.int_range(pl.len()).over("instance") == 0
    return ordered.filter(new | first)


def settled(tallies: pl.DataFrame, ends: pl.DataFrame) -> pl.Series:
    """Tell which tallies fall into intervals that begin and end inside this stretch.

    The first end may repeat the stamp of one in the stretch before, so only the second one surely
    begins an interval.
    """
    if ends.height < 3 or ends["instance"].null_count() < ends.height:
        return pl.Series([False] * tallies.height, dtype=pl.Boolean)
    first, last = ends["offset"][1], ends["offset"][-1]
    here = (pl.col("offset") >= first) & (pl.col("offset") < last) & pl.col("instance").is_null()
    return tallies.select(here.alias("settled"))["settled"]


def counted_events(tallies: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return one event per interval, instance, status and path class, ordered by offset."""
    if not tallies.height:
        return pl.DataFrame(schema={name: EVENTS[name] for name in EVENTS if name != "source"})
    ordered = tallies.sort("offset")
    begun = ends.with_columns(
        end=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32), begun=pl.col("stamp")
    ).drop("stamp")
    keyed = pl.col("end").fill_null(0).cast(pl.Int64) * 8192 + pl.col("code")
    keys = ["key", "slot"]
    if ordered["instance"].null_count() == ordered.height:
        joined = ordered.join_asof(begun.drop("instance"), on="offset", strategy="backward")
    else:
        keys.append("instance")
        joined = ordered.join_asof(
            begun, on="offset", by="instance", strategy="backward", check_sortedness=False
        )
    since = pl.coalesce(pl.col("stamp") - pl.col("begun"), "stamp")
    minute = (pl.col("outer") / _WRAPPED_S).floor()
    firsts = [name for name in TALLIES if name != "lines" and name not in keys]
    grouped = (
        joined.with_columns(key=keyed, slot=pl.coalesce(minute, (since / INTERVAL_S).floor()))
        .group_by(keys, maintain_order=True)
        .agg(pl.col(firsts).first(), pl.col("lines").sum())
    )
    labels = {code: label_of(code) for code in grouped["code"].unique().to_list()}
    kinds = {code: _kind(label) for code, (label, _) in labels.items()}
    beginnings = {code: _beginning(*label) for code, label in labels.items()}
    begins = pl.col("code").replace_strict(beginnings, return_dtype=pl.String())
    return grouped.select(
        "offset",
        "clock",
        "stamp",
        "outer",
        "instance",
        pl.lit(None, pl.String()).alias("engine"),
        pl.lit("APIServer").alias("process"),
        pl.col("code").replace_strict(kinds, return_dtype=pl.String()).alias("kind"),
        pl.concat_str(begins, "lines", pl.lit("}")).alias("fields"),
    )


def _kind(label: str) -> str:
    return "request_counts" if label == "request" else "http_access"


def _beginning(label: str, detail: str) -> str:
    """Return the fields of an event up to its count."""
    if label == "request":
        return f'{{"{detail}":'
    return f'{{"status":{label},"path_class":"{detail}","count":'
