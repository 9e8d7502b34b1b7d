"""What tipped the scale between lost capacity and changed traffic → exhibits.

The attribution weighs witnesses (docs/attribution.md); each says by how much it moved the odds. A
finding shows the strongest of them on either side, so that the split can be checked by hand.
"""

import math

from forensics.attribution import Witness
from forensics.catalog.messages import Message
from rules.interface import Case, Exhibit

# Odds of less than 4 to 3 move nobody; more than a handful is not read (guesses).
_SHOWN = 0.3
_MOST = 4
# By witness: the signal it was read from, and the unit of its figures.
_READ: dict[str, tuple[str, str]] = {
    "request_contents": ("hit_rate", "ratio"),
    "pool_never_filled": ("generation_tokens", "ratio"),
    "pool_shrank": ("kv_usage", "ratio"),
    "reuse_cut_short": ("block_reuse_s", "ratio"),
    "longer_prompts_same_hits": ("prompt_tokens", "tokens"),
    "sharing_of_running_lost": ("kv_usage", "tokens per token"),
    "thin_traffic": ("first_tokens", "requests"),
    "few_witnesses": ("hit_rate", "ratio"),
    "sharp_onset": ("hit_rate", "ratio"),
    "fall_completed": ("hit_rate", "ratio"),
    "pool_turnover": ("generation_tokens", ""),
    "prompts_longer": ("prompt_tokens", "tokens"),
    "prompts_shorter": ("prompt_tokens", "tokens"),
    "prompt_length_mix": ("prompt_len", "ratio"),
    "load_rise": ("running", "requests"),
    "hits_held": ("generation_tokens", ""),
    "exhausted_by_like_requests": ("kv_usage", "ratio"),
    "rate_follows_residence": ("residence_s", ""),
    "idle_hits": ("kv_usage", "ratio"),
    "loss_beyond_idle": ("kv_usage", "ratio"),
    "hit_tokens_per_request": ("hit_rate", "tokens per request"),
    "unshared_footprint": ("kv_usage", "tokens per token"),
    "level_near_zero": ("hit_rate", "ratio"),
    "computed_spread": ("computed_len", ""),
    "nearly_all_hit": ("computed_len", "ratio"),
    "reuse_gap_over_idle": ("block_reuse_s", "s"),
}


def spoken(case: Case, part: str) -> tuple[tuple[Exhibit, ...], tuple[Exhibit, ...]]:
    """Show the witnesses that spoke for one part of a fall, and those that spoke against it.

    Args:
        case: of a fall.
        part: "capacity" or "diversity".
    """
    if case.attribution is None:
        return (), ()
    sign = 1.0 if part == "capacity" else -1.0
    heard = [w for w in case.attribution.witnesses if abs(w.log_odds) >= _SHOWN]
    for_ = [_exhibit(case, w) for w in heard if sign * w.log_odds > 0]
    against = [_exhibit(case, w) for w in heard if sign * w.log_odds < 0]
    return tuple(for_[:_MOST]), tuple(against[:_MOST])


def _exhibit(case: Case, witness: Witness) -> Exhibit:
    signal, unit = _READ.get(witness.name, ("hit_rate", ""))
    side = "capacity" if witness.log_odds > 0 else "diversity"
    time = case.episode.onset[1] if case.episode is not None else case.window[1]
    alone = witness.after is None
    return Exhibit(
        witness.name,
        witness.before,
        witness.value if alone else witness.after,
        ("" if unit not in ("ratio", "") else unit) if alone else unit,
        case.timeline.place(signal, time),
        Message(f"note.odds_{side}", {"odds": math.exp(min(abs(witness.log_odds), 6.0))}),
    )
