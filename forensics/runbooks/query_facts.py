"""What the checks of queries ask: which families a query names, and what its parts amount to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from forensics.catalog.metrics_catalog import Exposure, MetricFamily, Sample, family, sample
from forensics.catalog.versions import Version, possible_generations
from forensics.ci_formats.interface import Severity
from forensics.runbooks.history import speaks_of_the_past
from forensics.runbooks.interface import Document, Query, Remark
from forensics.runbooks.promql.nodes import (
    RANGE_RATES,
    Aggregate,
    Binary,
    Call,
    Group,
    Node,
    Number,
    Selector,
    Subquery,
    bare,
    nodes,
    selectors,
)
from forensics.runbooks.target import Target

Scale = Literal["fraction", "percent"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A metric of the server in a query.

    Attributes:
        sample: what the name stands for; None when no release exposes it.
        family: its family, also when the name is a family's own (a counter without `_total`).
    """

    query: Query
    selector: Selector
    name: str
    sample: Sample | None
    family: MetricFamily | None

    def remark(
        self, message: str, replacement: str | None = None, severity: Severity | None = None
    ) -> Remark:
        """Return a remark on the name."""
        return remark(
            self.query,
            self.selector.name_start,
            self.selector.name_end,
            message,
            replacement,
            severity,
        )


def remark(
    query: Query,
    start: int,
    end: int,
    message: str,
    replacement: str | None = None,
    severity: Severity | None = None,
) -> Remark:
    """Return a remark on some characters of a query; a fix only where they stand unchanged."""
    if replacement is not None and not query.source.verbatim(start, end):
        replacement = None
    return Remark(*query.source.place(start, end), message, replacement, severity)


def on(query: Query, node: Node, message: str, severity: Severity | None = None) -> Remark:
    """Return a remark on a part of a query."""
    return remark(query, node.start, node.end, message, None, severity)


def trees(document: Document) -> Iterator[tuple[Query, Node]]:
    """Yield the queries that parse."""
    for query in document.queries:
        if query.tree is not None:
            yield query, query.tree


def mentions(document: Document) -> Iterator[Mention]:
    """Yield the metrics of the server that a document's queries name."""
    for query, tree in trees(document):
        for selector in selectors(tree):
            name = selector.metric
            if name is None or not name.startswith(("vllm:", "vllm_")):
                continue
            if query.filled.touches(selector.name_start, selector.name_end):
                continue
            found = sample(name)
            own = family(name.replace("vllm_", "vllm:", 1) if name.startswith("vllm_") else name)
            yield Mention(query, selector, name, found, found.family if found else own)


def current_mentions(document: Document) -> Iterator[Mention]:
    """Yield the metrics named, without those that running text calls a thing of the past."""
    for mention in mentions(document):
        if mention.query.role != "mention" or not speaks_of_the_past(
            document.lines, mention.query.source.span[0]
        ):
            yield mention


def instead(entry: MetricFamily) -> str:
    """Return what to look at instead of a family, as the end of a message."""
    if entry.replaced_by is None:
        return ""
    if entry.replaced_by.startswith("nothing"):
        _, _, why = entry.replaced_by.partition(": ")
        return f" Nothing takes its place: {why}." if why else " Nothing takes its place."
    return f" Look at {entry.replaced_by} instead."


def family_of(selector: Selector) -> MetricFamily | None:
    """Return the family of a selector's metric, with or without `_total`."""
    if selector.metric is None:
        return None
    found = sample(selector.metric)
    return found.family if found else family(selector.metric.replace("vllm_", "vllm:", 1))


def gaps(entry: MetricFamily, target: Target) -> tuple[list[Version], list[Version]]:
    """Return the targeted releases in which a family is absent, and those in which it is hidden."""
    absent, hidden = [], []
    for release in target.releases:
        exposure = entry.exposure(release, target.generation(release))
        if exposure is Exposure.ABSENT:
            absent.append(release)
        elif exposure is Exposure.HIDDEN:
            hidden.append(release)
    return absent, hidden


def other_engine_has(entry: MetricFamily, releases: Sequence[Version], target: Target) -> bool:
    """Tell whether the engine that is not targeted would show a family in all these releases."""
    return all(
        any(
            entry.exposure(release, generation) is Exposure.VISIBLE
            for generation in possible_generations(release)
            if generation != target.generation(release)
        )
        for release in releases
    )


def alternatives(tree: Node, selector: Selector) -> set[str]:
    """Return the metrics on the other side of any `or` above a selector: fallbacks for it."""
    found: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, Binary) and node.operator == "or":
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if side.start <= selector.start and selector.end <= side.end:
                    found |= {part.metric for part in selectors(other) if part.metric}
    return found


def rated(tree: Node) -> set[Selector]:
    """Return the selectors whose increase is taken, by `rate` and its kin or by subtraction."""
    found: set[Selector] = set()
    for node in nodes(tree):
        if isinstance(node, Call) and node.function in (RANGE_RATES | {"delta", "idelta"}):
            found.update(selectors(node))
        elif isinstance(node, Binary) and node.operator == "-":
            left, right = bare(node.left), bare(node.right)
            if isinstance(left, Selector) and isinstance(right, Selector):
                found.update((left, right))  # x - x offset 5m
    return found


def is_counter(selector: Selector) -> bool:
    """Tell whether a selector's values only grow: counters and the parts of histograms."""
    if selector.metric is None:
        return False
    found = sample(selector.metric)
    if found is None:
        own = family_of(selector)
        return own is not None and own.type == "counter"
    return found.role in ("total", "bucket", "sum", "count")


def is_fraction(selector: Selector) -> bool:
    """Tell whether a selector's values are shares from 0 to 1."""
    own = family_of(selector)
    return own is not None and own.type == "gauge" and own.unit.startswith("fraction")


def hits_or_queries(node: Node) -> Literal["hits", "queries"] | None:
    """Tell whether all metrics of a part are cache hits, or all cache lookups."""
    kinds = set()
    for selector in selectors(node):
        own = family_of(selector)
        if own is None:
            return None
        if own.name.endswith("cache_hits"):
            kinds.add("hits")
        elif own.name.endswith("cache_queries"):
            kinds.add("queries")
        else:
            return None
    if kinds == {"hits"}:
        return "hits"
    return "queries" if kinds == {"queries"} else None


def is_hit_ratio(node: Node) -> bool:
    """Tell whether a part is cache hits over lookups."""
    node = bare(node)
    return (
        isinstance(node, Binary)
        and node.operator == "/"
        and hits_or_queries(node.left) == "hits"
        and hits_or_queries(node.right) == "queries"
    )


def scale(node: Node) -> Scale | None:
    """Tell whether a part is a share from 0 to 1, one from 0 to 100, or something else."""
    if isinstance(node, Group):
        return scale(node.inner)
    if isinstance(node, Selector):
        return "fraction" if is_fraction(node) else None
    if isinstance(node, Aggregate):
        keeps = node.operator in ("avg", "max", "min", "quantile", "topk", "bottomk")
        return scale(node.inner) if keeps else None
    if isinstance(node, Subquery):
        return scale(node.inner)
    if isinstance(node, Call):
        vectors = [found for found in map(scale, node.arguments) if found]
        keeps = node.function.endswith("_over_time") or node.function.startswith("clamp")
        return vectors[0] if vectors and keeps and not node.function.startswith("count") else None
    if isinstance(node, Binary):
        return _scale_of_operation(node)
    return None


def _scale_of_operation(node: Binary) -> Scale | None:
    if is_hit_ratio(node):
        return "fraction"
    sides = (bare(node.left), bare(node.right))
    numbers = [side.value for side in sides if isinstance(side, Number)]
    inner = next((found for found in map(scale, sides) if found), None)
    if node.operator == "*" and numbers == [100.0] and inner == "fraction":
        return "percent"
    if node.operator == "-" and isinstance(sides[0], Number) and numbers[0] in (1.0, 100.0):
        return inner
    if node.operator in ("and", "unless", "or"):
        return scale(node.left)
    return None
