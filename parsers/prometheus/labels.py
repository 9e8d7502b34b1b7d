"""Turns the label set of a time series, as exposed, into the columns that name it.

vLLM labels its series `model_name` and, since 0.8.3, `engine` (the data-parallel rank). Everything
else comes from the collectors around it: `instance` and `job` from Prometheus, `pod` from
Kubernetes, `service_instance_id` and `k8s_pod_name` from OpenTelemetry, `model` and `version` from
Triton, `ReplicaId` from Ray. Nothing is interpreted here; only who is speaking is read off.
"""

import math
import re
from functools import lru_cache
from typing import NamedTuple

import orjson

INSTANCE_LABELS = (
    "instance",
    "exported_instance",
    "service_instance_id",
    "service.instance.id",
    "pod",
    "pod_name",
    "k8s_pod_name",
    "kubernetes_pod_name",
    "k8s.pod.name",
)
"""Labels that name a server, the most telling first; only `instance` leaves the label column."""

ENGINE_LABELS = ("engine", "engine_index")
"""Labels that name a data-parallel rank."""

EDGE_LABELS = ("le", "quantile")
"""Labels that hold the edge of a bucket or the quantile of a summary."""

REPLICA_LABEL = "ReplicaId"
"""Ray Serve's name for one copy of a deployment."""

_RANK = re.compile(r"0*([0-9]{1,9})\Z")


class SeriesName(NamedTuple):
    """What tells one time series of a source from another; the columns of `evidence.SERIES`.

    A tuple, because a fleet's dump makes hundreds of thousands and looks each of them up.

    Attributes:
        metric: sample name as exposed; empty for the result of an expression.
        instance: who was scraped; None when no label says so.
        engine: data-parallel rank without padding; None when no label says so.
        labels: the remaining labels as a compact JSON object with sorted keys.
        edge: `le` of a bucket or `quantile` of a summary; None otherwise.
    """

    metric: str
    instance: str | None
    engine: str | None
    labels: str
    edge: float | None


def series_name(labels: dict[str, str], metric: str | None = None) -> SeriesName:
    """Name a series from its labels.

    Args:
        labels: all labels as exposed; `__name__` among them unless `metric` is given.
        metric: the sample name when the format keeps it apart from the labels.

    Example:
        >>> series_name({"__name__": "up", "instance": "a:8000", "job": "vllm"}).labels
        '{"job":"vllm"}'
    """
    rest = dict(labels)
    name = rest.pop("__name__", "")
    if metric is not None:
        name = metric
    edge = _edge(rest)
    instance = _first(rest, INSTANCE_LABELS)
    replica = rest.get(REPLICA_LABEL)
    if replica:
        # Ray exposes all replicas of a node through one agent: the instance alone mixes them up.
        instance = f"{instance}/{replica}" if instance else replica
    rest.pop("instance", None)
    engine = _first(rest, ENGINE_LABELS)
    for label in ENGINE_LABELS:
        rest.pop(label, None)
    text = orjson.dumps(rest, option=orjson.OPT_SORT_KEYS).decode()
    return SeriesName(name, instance, None if engine is None else rank_of(engine), text, edge)


@lru_cache(4096)
def rank_of(engine: str) -> str:
    """Return a rank without padding; anything else as it stands."""
    rank = _RANK.match(engine)
    return engine if rank is None else rank[1]


def _first(labels: dict[str, str], names: tuple[str, ...]) -> str | None:
    """Return the first label of `names` that is present and not empty."""
    return next((labels[name] for name in names if labels.get(name)), None)


def _edge(labels: dict[str, str]) -> float | None:
    """Take the bucket edge out of the labels; one that is no number stays a label."""
    for label in EDGE_LABELS:
        text = labels.get(label)
        if text is None:
            continue
        try:
            edge = float(text)
        except ValueError:
            continue
        if not math.isnan(edge):
            del labels[label]
            return edge
    return None
