"""Rows → engines: which rows speak of the same scheduler and pool, whatever file they came from.

A vLLM engine is one scheduler with one pool: a data-parallel rank of one server. Metrics name it by
the labels `instance` (or pod) and `engine`; logs by what the wrapper says and by ``Engine 003:`` or
``(EngineCore_DP3 …)``. Rows of a server that name no rank (start-up lines, access lines, metrics of
V0 and of V1 before 0.8.3) belong to every engine of that server.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from forensics.evidence import Evidence

# Series that only an engine exposes; `up` and exporters of the machine make no engine.
# A fleet is analysed engine by engine; labels made up by the thousand must not take hours.
MOST_ENGINES = 512
ENGINE_PREFIXES = ("vllm:", "vllm_")


@dataclass(frozen=True, slots=True)
class EngineKey:
    """One engine: the server it belongs to and its rank.

    Attributes:
        name: as shown to people: the rank alone when there is one server, else ``server/rank`` (the
            server alone when it has one engine).
        server: canonical name of the server; "" when nothing names it.
        rank: data-parallel rank as text.
        instances: values of `instance` in series and events that belong to the server.
        streams: log streams that belong to the server.
    """

    name: str
    server: str
    rank: str
    instances: tuple[str | None, ...]
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineMap:
    """All engines of an analysis, in the order of their names; `left_out` counts those beyond."""

    keys: tuple[EngineKey, ...]
    left_out: int = 0

    def of_series(self, evidence: Evidence, key: EngineKey) -> pl.DataFrame:
        """Give the series of one engine, the server's own rankless ones included."""
        mine = evidence.series.filter(_among(pl.col("instance"), key.instances))
        return mine.filter((pl.col("engine") == key.rank) | pl.col("engine").is_null())

    def of_rows(self, evidence: Evidence, rows: pl.DataFrame, key: EngineKey) -> pl.DataFrame:
        """Give the events or facts of one engine, the server's own rankless ones included."""
        streams = {
            index for index, source in enumerate(evidence.sources) if source.stream in key.streams
        }
        from_log = pl.col("source").is_in(sorted(streams)) & (
            pl.col("instance").is_null() | _among(pl.col("instance"), key.instances)
        )
        from_metrics = ~pl.col("source").is_in(sorted(_log_sources(evidence))) & _among(
            pl.col("instance"), key.instances
        )
        mine = rows.filter(from_log | from_metrics)
        return mine.filter((pl.col("engine") == key.rank) | pl.col("engine").is_null())


def map_engines(evidence: Evidence) -> EngineMap:
    """Find the engines of the evidence.

    Servers are paired by name where names exist. One unnamed recording of metrics and one unnamed
    log are one server; so is a log whose wrapper's name occurs in the metrics' labels.
    """
    servers = _metric_servers(evidence)
    logs = _log_groups(evidence)
    loose = [group for group in logs if not _adopt(group, servers)]
    if len(servers) == 1 and loose:
        only = servers[0]
        for group in list(loose):
            if not any(_overlap(group, other) for other in only.groups):
                only.take(group)
                loose.remove(group)
    servers += [_Server(group.label, {group.instance}, {None}, [group]) for group in loose]
    merged = _join_successors(servers)
    keys = _name(merged)
    return EngineMap(keys[:MOST_ENGINES], max(0, len(keys) - MOST_ENGINES))


@dataclass(slots=True)
class _Group:
    """The log rows of one stream (and wrapper name): a server's log, or a part of it."""

    stream: str
    instance: str | None
    label: str
    ranks: set[str]
    first: float
    last: float
    clock: str


@dataclass(slots=True)
class _Server:
    label: str
    instances: set[str | None]
    ranks: set[str | None]
    groups: list[_Group]

    def take(self, group: _Group) -> None:
        self.groups.append(group)
        if group.instance is not None:
            self.instances.add(group.instance)


def _log_sources(evidence: Evidence) -> set[int]:
    return set(evidence.events["source"].unique().to_list())


def _metric_servers(evidence: Evidence) -> list[_Server]:
    is_engine = pl.any_horizontal(
        pl.col("metric").str.starts_with(prefix) for prefix in ENGINE_PREFIXES
    )
    found: dict[str | None, set[str | None]] = {}
    pairs = evidence.series.filter(is_engine).select("instance", "engine").unique()
    for instance, engine in sorted(pairs.iter_rows(), key=repr):
        found.setdefault(instance, set()).add(engine)
    named = {name for name in found if name is not None}
    if None in found and len(named) == 1:  # raw scrapes beside what Prometheus kept of one server
        found[next(iter(named))] |= found.pop(None)
        return [_Server(name or "", {name, None}, ranks, []) for name, ranks in found.items()]
    return [_Server(name or "", {name}, ranks, []) for name, ranks in found.items()]


def _log_groups(evidence: Evidence) -> list[_Group]:
    streams = [source.stream for source in evidence.sources]
    groups: dict[tuple[str, str | None], _Group] = {}
    columns = ("source", "instance", "engine", "clock", "stamp", "outer")
    stats = evidence.events.select(columns)
    facts = evidence.facts.filter(pl.col("source").is_in(sorted(_log_sources(evidence))))
    both = pl.concat([stats, facts.select(columns)]) if facts.height else stats
    summary = (
        both.group_by("source", "instance")
        .agg(
            pl.col("engine").drop_nulls().unique().sort(),
            pl.col("clock").first(),
            pl.coalesce("outer", "stamp").min().alias("first"),
            pl.coalesce("outer", "stamp").max().alias("last"),
        )
        .sort("source", "instance")
    )
    for source, instance, engines, clock, first, last in summary.iter_rows():
        stream = streams[source]
        group = groups.get((stream, instance))
        low = first if first is not None else float("inf")
        high = last if last is not None else float("-inf")
        if group is None:
            label = instance or stream
            groups[(stream, instance)] = _Group(
                stream, instance, label, set(engines), low, high, clock
            )
        else:
            group.ranks |= set(engines)
            group.first, group.last = min(group.first, low), max(group.last, high)
    # Rows before the wrapper named anybody belong to the stream's only named server.
    by_stream: dict[str, list[_Group]] = {}
    for group in groups.values():
        by_stream.setdefault(group.stream, []).append(group)
    result: list[_Group] = []
    for members in by_stream.values():
        named = [group for group in members if group.instance is not None]
        if len(named) == 1:
            result.append(named[0])
        else:
            result += named or members
    return sorted(result, key=lambda group: (group.stream, group.instance or ""))


def _adopt(group: _Group, servers: Iterable[_Server]) -> bool:
    """Give a log to the server whose name it carries; tell whether one was found."""
    words = [word for word in (group.instance, group.stream) if word]
    for server in servers:
        for name in server.instances:
            if not name:
                continue
            host = name.split(":")[0]
            distinct = len(host) > 3 and host not in ("localhost", "127.0.0.1", "0.0.0.0")
            if group.instance == name or (distinct and any(host in word for word in words)):
                server.take(group)
                return True
    return False


def _overlap(left: _Group, right: _Group) -> bool:
    """Tell whether two logs ran at the same time with the same rank: then they are two servers."""
    if left.clock != right.clock or not (left.ranks & right.ranks or left.ranks == right.ranks):
        return False
    return min(left.last, right.last) - max(left.first, right.first) > 0


def _join_successors(servers: list[_Server]) -> list[_Server]:
    """Join unnamed logs that follow one another: one server, started again into another file."""
    joined: list[_Server] = []
    for server in servers:
        for earlier in joined:
            unnamed = all(
                group.instance is None for group in (*server.groups, *earlier.groups)
            ) and not ((server.instances | earlier.instances) - {None})
            apart = not any(_overlap(a, b) for a in server.groups for b in earlier.groups)
            if unnamed and apart and server.groups and earlier.groups:
                earlier.groups += server.groups
                break
        else:
            joined.append(server)
    return joined


def _name(servers: list[_Server]) -> tuple[EngineKey, ...]:
    keys: list[EngineKey] = []
    for server in servers:
        ranks = {rank for rank in server.ranks if rank is not None}
        ranks |= {rank for group in server.groups for rank in group.ranks}
        for rank in sorted(ranks or {"0"}, key=_rank_order):
            if len(servers) == 1:
                name = rank
            else:
                name = server.label if len(ranks) <= 1 else f"{server.label}/{rank}"
            keys.append(
                EngineKey(
                    name=name,
                    server=server.label,
                    rank=rank,
                    instances=tuple(sorted(server.instances, key=lambda item: item or "")),
                    streams=tuple(sorted({group.stream for group in server.groups})),
                )
            )
    return tuple(sorted(keys, key=lambda key: (key.server, _rank_order(key.rank))))


def _rank_order(rank: str) -> tuple[int, int, str]:
    return (0, int(rank), "") if rank.isdigit() and len(rank) < 9 else (1, 0, rank)


def _among(column: pl.Expr, values: tuple[str | None, ...]) -> pl.Expr:
    named = [value for value in values if value is not None]
    test = column.is_in(named)
    return (test | column.is_null()) if None in values else test.fill_null(value=False)
