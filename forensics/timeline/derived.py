"""Amounts of an engine's grid → the rates that follow from them: throughput, hits, residence."""

import numpy as np

from forensics.timeline import rates
from forensics.timeline.grid import Columns
from forensics.timeline.records import Origin


def derive(columns: Columns, pool_tokens: np.ndarray | None) -> None:
    """Add the rates that follow from amounts.

    Args:
        columns: changed in place.
        pool_tokens: size of the pool per bin in tokens (NaN where unknown), shape (n,), or None.
    """
    elapsed = columns.elapsed()
    for rate, amount in (
        ("prompt_tps", "prompt_tokens"),
        ("generation_tps", "generation_tokens"),
        ("requests_per_s", "finished"),
    ):
        if amount in columns.values and rate not in columns.values:
            columns.values[rate] = rates.per_second(columns.get(amount), elapsed)
            columns.origins[rate] = columns.origins[amount]
    if "queries" in columns.values and "prompt_tokens" in columns.values:
        flag = rates.ratio(columns.get("queries"), columns.get("prompt_tokens"))
        columns.values["queries_per_prompt_token"] = flag
        columns.origins["queries_per_prompt_token"] = columns.origins["queries"]
    _hit_rate(columns)
    if pool_tokens is not None and "kv_usage" in columns.values:
        hit = np.clip(np.nan_to_num(columns.get("hit_rate")), 0.0, 1.0)
        prompts = columns.get("prompt_tps")
        computed = rates.per_second(columns.get("computed_tokens"), elapsed)
        computed = np.where(np.isnan(computed), prompts * (1 - hit), computed)
        columns.values["residence_s"] = rates.residence(
            pool_tokens if pool_tokens.size else np.full(columns.count, np.nan),
            columns.get("kv_usage"),
            computed,
            np.maximum(prompts - computed, 0.0),
            columns.get("generation_tps"),
        )
        columns.values["residence_s"][np.isinf(columns.values["residence_s"])] = np.nan
        origin = columns.origins["kv_usage"]
        columns.origins["residence_s"] = Origin(
            origin.clock, origin.source, origin.series, "estimated from counters"
        )


def _hit_rate(columns: Columns) -> None:
    if "hits" in columns.values and "queries" in columns.values:
        columns.values["counter_hit_rate"] = rates.share(
            columns.get("hits"), columns.get("queries")
        )
        columns.origins["counter_hit_rate"] = columns.origins["hits"]
    if "cached_tokens" in columns.values and "computed_tokens" in columns.values:
        cached = columns.get("cached_tokens")
        whole = (
            cached + columns.get("computed_tokens") + np.nan_to_num(columns.get("external_tokens"))
        )
        columns.values["hit_rate"] = rates.ratio(cached, whole)
        columns.values["hit_weight"] = whole
        columns.origins["hit_rate"] = columns.origins["cached_tokens"]
    elif "hits" in columns.values and "queries" in columns.values:
        columns.values["hit_rate"] = columns.get("counter_hit_rate")
        columns.values["hit_weight"] = columns.get("queries")
        columns.origins["hit_rate"] = columns.origins["hits"]
    elif "_lifetime" in columns.values and "prompt_tokens" in columns.values:
        so_far = _since_start(columns, columns.get("prompt_tokens"))
        rate = rates.from_lifetime_average(columns.get("_lifetime"), so_far)
        columns.values["hit_rate"] = rate
        columns.values["hit_weight"] = np.where(
            np.isnan(rate), np.nan, columns.get("prompt_tokens")
        )
        origin = columns.origins["_lifetime"]
        columns.origins["hit_rate"] = Origin(
            origin.clock, origin.source, origin.series, "recovered from a lifetime average"
        )
    if "hit_rate" in columns.values:
        columns.origins["hit_weight"] = columns.origins["hit_rate"]


def _since_start(columns: Columns, amounts: np.ndarray) -> np.ndarray:
    """Add amounts up since each process started; NaN where its start was not seen; shape (n,)."""
    so_far = np.nancumsum(amounts) + float(columns.values.get("_prompt_base", np.zeros(1))[0])
    for at in np.flatnonzero(columns.resets):
        so_far[at:] = np.nancumsum(amounts[at:])
    return np.where(columns.present, so_far, np.nan)
