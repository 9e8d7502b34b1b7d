"""The attribution of a fall → how strongly it speaks for lost capacity, or for changed traffic."""

from forensics.attribution import Attribution

# Even a clear attribution rests on figures that may be misread. Guess.
CLEAR = 0.97
# Just below what a verdict needs: where the two cannot be told apart no rule may tip the scale.
UNDECIDED = 0.49


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
