"""Reads from the labels of info series what a server stated about itself.

`vllm:cache_config_info` (0.3.3 and later) carries the cache configuration as labels; GPU exporters
carry the name of the card as a label and its memory as a value.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import cast

import polars as pl

from forensics.evidence import FACTS

_CONFIG = re.compile(r"(?:ray_)?vllm[:_](?:\w+_)?config_info\Z|(?:ray_)?vllm[:_]info\Z")
_GPU_EXPORTER = re.compile(r"DCGM_FI_|nvidia_?(?:smi|gpu)|nv_gpu_|node_(?:gpu|nvidia|drm)")
_GPU_NAME_LABELS = ("modelName", "gpu_name", "product_name", "card_model", "name")
_MIB_TOTAL = re.compile(r"nvidia_?(?:smi_memory_total_bytes|gpu_memory_total_bytes)\Z")
_TRITON_TOTAL = "nv_gpu_memory_total_bytes"

Row = dict[str, object]


def facts_of(series: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return the facts that series state, stamped with their first sample.

    Args:
        series: schema `evidence.SERIES`.
        samples: schema `evidence.SAMPLES`.

    Returns:
        A frame of schema `evidence.FACTS`: ``cache_config.<label>``, ``vllm.version``,
        ``gpu.name`` and ``gpu.total_mib``; cards of one server that state the same give one row.
    """
    telling = series.filter(
        pl.col("metric").str.contains(r"config_info$|^DCGM_|^n[vo]|^(ray_)?vllm[:_]info$")
    )
    if telling.is_empty():
        return pl.DataFrame(schema=FACTS)
    points = samples.filter(pl.col("series").is_in(telling["series"].implode())).group_by("series")
    first = points.agg(
        pl.col("stamp").min(), pl.col("value").sort_by("stamp", nulls_last=True).first()
    )
    rows: list[Row] = []
    framebuffers: dict[tuple[object, ...], list[tuple[Row, float]]] = {}
    for row in telling.join(first, on="series", how="inner").sort("series").iter_rows(named=True):
        metric = cast(str, row["metric"])
        labels = cast(Mapping[str, str], json.loads(row["labels"]))
        if _CONFIG.match(metric):
            rows += _config_facts(metric, row, labels)
        elif _GPU_EXPORTER.match(metric):
            rows += _gpu_facts(metric, row, labels)
            if metric in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"):
                card = (row["source"], row["instance"], labels.get("UUID"), labels.get("gpu"))
                framebuffers.setdefault(card, []).append((row, cast(float, row["value"])))
    for halves in framebuffers.values():
        if {half["metric"] for half, _ in halves} == {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"}:
            # DCGM gives MiB; used and free of one card make its size (less what the driver keeps).
            used = next(v for half, v in halves if half["metric"] == "DCGM_FI_DEV_FB_USED")
            free = next(v for half, v in halves if half["metric"] == "DCGM_FI_DEV_FB_FREE")
            if math.isfinite(used + free):
                rows.append(_fact(halves[0][0], "gpu.total_mib", str(round(used + free))))
    frame = pl.DataFrame(rows, schema=FACTS)
    return frame.unique(["instance", "engine", "key", "value", "stamp"], keep="first").sort(
        "offset", "key", "value"
    )


def _fact(row: Mapping[str, object], key: str, value: str) -> Row:
    """Make one row of `evidence.FACTS` with the provenance of a series."""
    kept = {
        name: row[name] for name in ("source", "offset", "clock", "stamp", "instance", "engine")
    }
    return {**kept, "outer": None, "key": key, "value": value}


def _config_facts(metric: str, row: Row, labels: Mapping[str, str]) -> list[Row]:
    """Give each label of a configuration series as a fact."""
    topic = (
        metric.replace(":", "_").removeprefix("ray_").removeprefix("vllm_").removesuffix("_info")
    )
    collectors = ("job", "pod", "namespace", "container", "node", "endpoint", "service")
    facts = [
        _fact(row, f"{topic}.{label}", value)
        for label, value in sorted(labels.items())
        if label not in collectors
    ]
    if topic == "info" and "version" in labels:
        facts.append(_fact(row, "vllm.version", labels["version"]))
    return facts


def _gpu_facts(metric: str, row: Row, labels: Mapping[str, str]) -> list[Row]:
    """Give the name and the memory of a card from a GPU exporter's series."""
    facts = []
    name = next((labels[label] for label in _GPU_NAME_LABELS if labels.get(label)), None)
    if name is not None:
        facts.append(_fact(row, "gpu.name", name))
    value = cast(float, row["value"])
    if (_MIB_TOTAL.match(metric) or metric == _TRITON_TOTAL) and math.isfinite(value):
        facts.append(_fact(row, "gpu.total_mib", str(round(value / (1 << 20)))))
    return facts
