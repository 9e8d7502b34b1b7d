"""One fall of the hit rate → its parts: diversity, capacity, cold, counting.

The order is the one of diagnosis.md, section 3: what the counters made is taken off first, then
what an event took and the traffic brought back; the rest is shared between diversity and capacity,
by request contents where they are in the log, else by physics and the weighed witnesses. The score
says how likely capacity is the larger part; only above a set probability is it called decided.
"""

import math
from dataclasses import replace

from forensics.attribution import physics
from forensics.attribution.combiner import combiner, probability
from forensics.attribution.contents import Contents
from forensics.attribution.counting import counting_part
from forensics.attribution.events import cold_part
from forensics.attribution.exact import exact_split
from forensics.attribution.figures import Figures, figures
from forensics.attribution.onset import shape
from forensics.attribution.records import Attribution, Part, Witness
from forensics.attribution.witnesses import footprint, readings
from forensics.diary import Epoch
from forensics.episodes import LEAST_FALL, Episode
from forensics.timeline import EngineTimeline

# A decided split leaves the smaller part at most this share of what was to be split.
_SMALLER_PART = 0.5
# Of labelled falls 7 in 102 have parts nearer to each other than 1 to 4: once it is decided which
# is the larger, the split lies nearer to the end than the odds of being right.
_SHARPER = 2.0
# Windows with fewer requests say proportionally less; recordings of real servers with 80 to 100
# requests per phase are judged in full (diagnosis.md 3.4 on its guards).
_ENOUGH_REQUESTS = 60.0
# A rest this small is not worth a split (guess).
_NOTHING = 0.01


def attribute(
    timeline: EngineTimeline,
    episode: Episode,
    epoch: Epoch,
    contents: Contents | None = None,
) -> Attribution:
    """Share a fall out among its parts.

    Args:
        timeline: the engine.
        episode: a fall of `hit_rate` or `counter_hit_rate`.
        epoch: the epoch the episode lies in; its pool size and version count.
        contents: block hashes of the requests in the log, where they are.

    Returns:
        Parts that sum to ``episode.before - episode.level``.
    """
    fall = max(0.0, episode.before - episode.level)
    pool = float(epoch.pool.tokens) if epoch.pool.tokens else None
    before = figures(timeline, episode.baseline, pool)
    after = figures(timeline, episode.after, pool)
    counting = counting_part(timeline, episode, before, after)
    cold = cold_part(timeline, episode)
    doubt = counting.low < counting.high and fall - counting.high < LEAST_FALL
    gone = Part("cold", 0.0, 0.0, 0.0)
    if cold is not None:
        room = fall - counting.value
        gone = Part("cold", min(room, cold.value), min(room, cold.low), cold.high)
    rest = max(0.0, fall - counting.value - gone.value)
    exact = exact_split(contents, episode, before.prompt_len) if contents is not None else None
    if exact is not None:
        diversity, capacity = exact.share(rest)
        return Attribution(
            before=episode.before,
            after=episode.level,
            parts=(diversity, capacity, gone, counting),
            # What contents say of diversity holds however hits were counted.
            decided=not doubt or diversity.value >= _SMALLER_PART * fall,
            basis="exact",
            witnesses=(
                Witness("request_contents", exact.after, exact.before, exact.after, exact.log_odds),
            ),
            perhaps_counted=doubt,
        )
    odds, witnesses = _weigh(timeline, _true_fall(episode, before, after), before, after, pool)
    if cold is not None and any(w.name == physics.NEVER_FILLED for w in witnesses):
        # Nothing can have been evicted since the event: what is not back yet is still cold.
        gone, rest = replace(gone, value=gone.value + rest, high=gone.value + rest), 0.0
    chance = probability(odds)
    decided = not doubt and max(chance, 1.0 - chance) >= combiner().answer_at
    by_event = cold is not None and gone.value >= 0.5 * fall
    diversity, capacity = _split(rest, chance, decided)
    return Attribution(
        before=episode.before,
        after=episode.level,
        parts=(diversity, capacity, gone, counting),
        decided=decided or (not doubt and rest <= max(_NOTHING, 0.2 * fall)),
        basis="event" if by_event else "score",
        witnesses=witnesses,
        capacity_odds=chance,
        perhaps_counted=doubt,
    )


def _true_fall(episode: Episode, before: Figures, after: Figures) -> Episode:
    """Give the fall that requests had, where the episode is one of the raw counters."""
    if episode.signal == "hit_rate" or before.hit_rate is None or after.hit_rate is None:
        return episode
    if before.hit_rate <= after.hit_rate:
        return episode
    return replace(episode, signal="hit_rate", before=before.hit_rate, level=after.hit_rate)


def _weigh(
    timeline: EngineTimeline,
    episode: Episode,
    before: Figures,
    after: Figures,
    pool: float | None,
) -> tuple[float, tuple[Witness, ...]]:
    earlier = timeline.diary.at(episode.baseline.end).pool.tokens
    old = float(earlier) if earlier else pool
    course = shape(timeline, episode, pool)
    score, heard = combiner().weigh(readings(timeline, episode, before, after, course, pool))
    foot = footprint(before, old), footprint(after, pool)
    asked = (
        physics.never_filled(timeline, episode, pool),
        physics.pool_shrank(old, pool),
        physics.reuse_cut_short(timeline, episode),
        physics.longer_prompts(before, after, course),
        physics.sharing_lost(episode, before, after, foot),
    )
    firm = [witness for witness in asked if witness is not None]
    witnesses = [*firm, *heard]
    total = score + sum(witness.log_odds for witness in firm)
    requests = min(_known(before.requests), _known(after.requests))
    if not any(abs(w.log_odds) >= physics.CERTAIN for w in firm) and requests < _ENOUGH_REQUESTS:
        lost = total * (requests / _ENOUGH_REQUESTS - 1.0)
        witnesses.append(Witness("thin_traffic", requests, None, requests, lost))
        total += lost
    witnesses.sort(key=lambda witness: (-abs(witness.log_odds), witness.name))
    return total, tuple(witnesses)


def _known(requests: float | None) -> float:
    return _ENOUGH_REQUESTS if requests is None else requests


def _split(rest: float, chance: float, decided: bool) -> tuple[Part, Part]:
    """Share the rest in proportion to the odds, with the interval that the odds allow."""
    least = {"capacity": 0.0, "diversity": 0.0}
    most = {"capacity": 1.0, "diversity": 1.0}
    if decided:
        larger, smaller = ("capacity", "diversity") if chance >= 0.5 else ("diversity", "capacity")
        least[larger], most[smaller] = 1.0 - _SMALLER_PART, _SMALLER_PART
        odds = (chance / (1.0 - chance)) ** _SHARPER if chance < 1.0 else math.inf
        chance = odds / (1.0 + odds) if math.isfinite(odds) else 1.0
    return (
        Part("diversity", rest * (1 - chance), rest * least["diversity"], rest * most["diversity"]),
        Part("capacity", rest * chance, rest * least["capacity"], rest * most["capacity"]),
    )
