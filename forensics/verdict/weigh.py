"""Opinions → verdict: one primary cause, contributing ones with shares, or an honest abstention.

Falls of the hit rate come first: each cause gets the points it took over all falls, and the one
that took most leads. Without a fall, the strongest opinion about the window leads. What took no
hits is reported among the findings and never as a share. Requests that became slow without any
cause at work are said to be so, with the part of their time that grew: that is not health. A
verdict is given only when its confidence passes `ANSWERED`; else the answer is
`insufficient-evidence` with both weights.
"""

from collections.abc import Sequence

from forensics.catalog.messages import Message
from forensics.verdict.falls import by_falls
from forensics.verdict.records import ANSWERED, HEALTHY, Judged, Verdict, Weighing
from forensics.verdict.states import by_state, slower, undecided
from rules.interface import Case

_EXPLAINS_HITS = (
    "preemption-cliff",
    "cold-cache",
    "caching-disabled",
    "sub-block-prefix",
    "long-context-hog",  # fills the pool, preempting or not, and leaves no block to others
)
_FATAL = frozenset({"engine-crash", "pool-too-small", "engine-stall"})
_FATAL_WEIGHT = 0.9


def weigh(
    judged: Sequence[Judged],
    falls: Sequence[Case],
    missing: Sequence[str],
    slow: Case | None = None,
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Weigh all opinions on all engines.

    Args:
        judged: every opinion that any rule gave.
        falls: the cases that are falls of the hit rate, explained or not.
        missing: what keeps "nothing happened" from being claimed; empty when enough was seen.
        slow: the case in which a latency rose most; None when none rose.

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
    if strong:
        return by_state(strong, ordered)
    if slow is not None and slow.episode is not None:
        return slower(slow, slow.episode, states, ordered)
    if missing or states:
        named = tuple(dict.fromkeys([*missing, *(m for i in states for m in i.opinion.missing)]))
        return undecided(states, ordered, named)
    summary = Message("verdict.healthy", {"engine_note": ""})
    verdict = Verdict(HEALTHY, 0.95, None, None, None, summary)
    return verdict, tuple(Weighing(item, "also-observed") for item in ordered)
