"""The table of models (`models.toml`): what decides how large a KV cache is, by model name.

The geometry of a model that is not in the table is read from its ``config.json``
(`forensics.catalog.model_config`).
"""

import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TypedDict, cast

from forensics.catalog.model_config import geometry_from_config
from forensics.catalog.model_geometry import ModelGeometry, quantised_bytes

__all__ = ["ModelGeometry", "geometry", "geometry_from_config", "models"]


class _Row(TypedDict, total=False):
    name: str
    also: list[str]
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    params_b: float
    active_b: float
    window: int
    window_layers: int
    latent: int
    linear_layers: int
    bytes: float


_TUNED = (
    r"instruct|chat|it|hf|base|bf16|fp16|pt|preview|dynamic|static|quantized|text|unsloth|"
    r"int4|int8|4bit|8bit|bnb|w4a16|w8a16|w8a8|awq|gptq|gguf|fp8|fp4|nvfp4|mxfp4|block|marlin|q4|q8"
)
_SUFFIX = re.compile(rf"[-_.](?:{_TUNED})(?=$|[-_.])")


@cache
def models() -> dict[str, ModelGeometry]:
    """Return all models by repository name, in the order of the file."""
    return {row["name"]: _geometry(row) for row in _rows()}


def geometry(name: str | None) -> ModelGeometry | None:
    """Return the geometry behind a model name; None when the table does not have it.

    Organisation, path, case, fine-tuning and quantisation suffixes do not matter; quantisation
    changes `bytes_per_param`.

    >>> geometry("/models/Llama-3.1-8B-Instruct-AWQ").kv_heads
    8
    """
    if not name:
        return None
    leaf = name.strip().rstrip("/").replace("\\", "/").split("/")
    # A hub cache path names the model two levels up: models--org--name/snapshots/<hash>.
    cached = next((part for part in leaf if part.startswith("models--")), None)
    text = (cached.split("--")[-1] if cached else leaf[-1])[:200].lower()
    found = _by_key().get(_key(text))
    if found is None:
        return None
    weight = quantised_bytes(text)
    return found if weight is None else replace(found, bytes_per_param=weight)


def _key(text: str) -> str:
    short = text
    while (shorter := _SUFFIX.sub("", short)) != short:
        short = shorter
    return re.sub(r"[^a-z0-9]+", "", short.removeprefix("meta-"))


@cache
def _rows() -> tuple[_Row, ...]:
    text = files("forensics.catalog").joinpath("models.toml").read_text(encoding="utf-8")
    return tuple(cast(list[_Row], tomllib.loads(text)["model"]))


@cache
def _by_key() -> dict[str, ModelGeometry]:
    found: dict[str, ModelGeometry] = {}
    for row in _rows():
        for spelling in (row["name"].split("/")[-1], *row["also"]):
            found.setdefault(_key(spelling.lower()), models()[row["name"]])
    return found


def _geometry(row: _Row) -> ModelGeometry:
    params = row["params_b"] * 1e9
    return ModelGeometry(
        name=row["name"],
        layers=row["layers"],
        heads=row["heads"],
        kv_heads=row["kv_heads"],
        head_dim=row["head_dim"],
        v_head_dim=row["head_dim"],
        window=row.get("window", 0),
        window_layers=row.get("window_layers", 0),
        latent=row.get("latent", 0),
        linear_layers=row.get("linear_layers", 0),
        params=params,
        active_params=row["active_b"] * 1e9 if "active_b" in row else params,
        bytes_per_param=row.get("bytes", 2.0),
        source=f"catalogue, from config.json of {row['name']}",
    )
