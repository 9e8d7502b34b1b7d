"""The attribution of a fall → how strongly it speaks for lost capacity, or for changed traffic."""

from forensics.attribution import Attribution
from rules.interface import Case

# Even a clear attribution rests on figures that may be misread. Guess.
CLEAR = 0.97
# Just below what a verdict needs: where the two cannot be told apart no rule may tip the scale.
UNDECIDED = 0.49


def lacking(case: Case) -> tuple[str, ...]:
    """Name what was not observed and would tell the parts of a fall apart; none if they are."""
    attribution = case.attribution
    if attribution is None or attribution.decided:
        return ()
    if not attribution.perhaps_counted:
        return ("request contents or block histograms",)
    # What tells repeated lookups from lost hits, by release (metrics reference 3.7).
    if case.epoch.before(0, 13) is True:
        return ("a release that counts computed tokens (0.13+); its lookups repeat",)
    if case.epoch.before(0, 16) is True:
        return ("request_prefill_kv_computed_tokens (lookups repeat)",)
    return ("prompt_tokens_by_source (lookups repeat)",)


def strength(attribution: Attribution, part: str) -> float:
    """Give the weight 0-1 of "capacity" or "diversity" as the explanation of a fall.

    Where both were weighed it is the probability that this part is the larger one, as far as the
    fall is one of the two at all; where contents or events decided, the part's share.

    Args:
        attribution: of the fall.
        part: "capacity" or "diversity".
    """
    share = attribution.share(part)
    weight = share
    if attribution.capacity_odds is not None:
        odds = attribution.capacity_odds
        either = attribution.share("capacity") + attribution.share("diversity")
        weight = (odds if part == "capacity" else 1.0 - odds) * min(1.0, either)
    weight *= CLEAR
    return weight if attribution.decided else min(UNDECIDED, weight)
