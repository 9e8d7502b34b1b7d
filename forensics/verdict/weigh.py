"""Opinions → verdict: one primary cause, contributing ones with shares, or an honest abstention.

Falls of the hit rate come first: each cause gets the points it took over all falls, and the one
that took most leads. Without a fall, the strongest opinion about the window leads. What took no
hits is reported among the findings and never as a share. Requests that became slow without any
cause at work are said to be so, with the part of their time that grew: that is not health. A
verdict is given only when its confidence passes `ANSWERED`; else the answer is
`insufficient-evidence` with both weights.
"""

from collections.abc import Sequence
from dataclasses import replace

from forensics.catalog.messages import Message
from forensics.verdict.falls import by_falls
from forensics.verdict.records import ANSWERED, HEALTHY, Judged, Verdict, Weighing
from forensics.verdict.states import STANDING, by_state, slower, undecided
from rules.interface import Case, Severity

_EXPLAINS_HITS = (
    "preemption-cliff",
    "cold-cache",
    "caching-disabled",
    "sub-block-prefix",
    "long-context-hog",  # fills the pool, preempting or not, and leaves no block to others
)
_FATAL = frozenset({"engine-crash", "pool-too-small", "engine-stall"})
_FATAL_WEIGHT = 0.9
# How sure health is where all of it was seen, and where something may be hidden (guesses).
_SEEN, _IN_PART = 0.95, 0.75
# What merely informs explains slowness that began with it, within clocks' alignment; seconds.
_SAME_TIME_S = 60.0


def weigh(
    judged: Sequence[Judged],
    falls: Sequence[Case],
    missing: Sequence[str],
    slow: Case | None = None,
    unseen: Sequence[str] = (),
    *,
    reserve: Message | None = None,
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Weigh all opinions on all engines.

    Args:
        judged: every opinion that any rule gave.
        falls: the cases that are falls of the hit rate, explained or not.
        missing: what keeps "nothing happened" from being claimed although something may have
            happened to the hits, which a mere state does not explain; empty when enough was seen.
        slow: the case in which a latency rose most; None when none rose.
        unseen: what was never observed at all: it keeps health from being claimed and lets a
            state speak for itself.
        reserve: what may have happened unseen while nothing left its baseline; None when
            nothing could.

    Returns:
        The verdict, and the role of each opinion in it, strongest first.
    """
    ordered = sorted(
        judged,
        key=lambda item: (-item.points * item.opinion.weight, -item.opinion.weight,
                          item.opinion.rule_id, item.case.timeline.engine,
                          item.opinion.onset or (0.0, 0.0)),
    )  # fmt: skip
    fatal = [
        item
        for item in ordered
        if item.opinion.cause in _FATAL and item.opinion.weight >= _FATAL_WEIGHT
    ]
    if fatal:
        return by_state(fatal, ordered)
    if falls:
        return by_falls(ordered, falls)
    states = [item for item in ordered if item.case.episode is None]
    strong = [item for item in states if item.opinion.weight >= ANSWERED]
    if missing:  # something happened to the hits that a state does not explain
        strong = [item for item in strong if item.opinion.cause in _EXPLAINS_HITS]
    if slow is not None and slow.episode is not None:
        rise = slow.episode.onset
        if not any(_slows(item, rise) for item in strong):
            return slower(slow, slow.episode, states, ordered)
    if strong:
        verdict, roles_ = by_state(strong, ordered)
        return replace(verdict, missing=_once(verdict.missing, unseen)), roles_
    if missing or unseen or states:
        named = _once(missing, unseen, *(item.opinion.missing for item in states))
        return undecided(states, ordered, named)
    confidence = _SEEN if reserve is None else _IN_PART
    summary = reserve or Message("verdict.healthy")
    verdict = Verdict(HEALTHY, confidence, None, None, None, summary)
    return verdict, tuple(Weighing(item, "also-observed") for item in ordered)


def _slows(item: Judged, rise: tuple[float, float]) -> bool:
    """Tell whether a state can be why requests became slow at that time."""
    opinion = item.opinion
    if opinion.cause in STANDING:
        return False
    if opinion.severity is not Severity.INFO:
        return True
    return opinion.onset is not None and (
        rise[0] - _SAME_TIME_S <= opinion.onset[1] and opinion.onset[0] <= rise[1] + _SAME_TIME_S
    )


def _once(*names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in names for name in group))
