"""Falls of the hit rate and what was thought of them → the verdict, or both candidates."""

from collections.abc import Mapping, Sequence

from forensics.catalog.messages import Message
from forensics.verdict.records import (
    ANSWERED,
    INSUFFICIENT,
    PART_OF_ANSWER,
    Contribution,
    Judged,
    RunnerUp,
    Verdict,
    Weighing,
    fall,
)
from forensics.verdict.roles import roles
from rules.interface import Case

# Episodes of one cause at least half as large as its largest belong to the same incident (guess).
_COMPARABLE = 0.5


def by_falls(
    ordered: Sequence[Judged], falls: Sequence[Case]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Name the cause that took most of all falls, or abstain when it is less likely than not."""
    whole = sum(fall(case) for case in falls)
    points: dict[str, float] = {}
    taken: dict[str, float] = {}
    leading: dict[str, Judged] = {}
    for item in ordered:
        if item.case.episode is None:
            continue
        cause = item.opinion.cause
        best = leading.get(cause)
        points[cause] = points.get(cause, 0.0) + item.points
        taken[cause] = taken.get(cause, 0.0) + item.taken
        if best is None or item.points > best.points:
            leading[cause] = item
    causes = sorted(points, key=lambda cause: (-points[cause], cause))
    if not causes:
        largest = max(falls, key=fall)
        return _unexplained(largest, ordered)
    first = leading[causes[0]]
    confidence = first.opinion.weight
    shares = _shares(taken, whole)
    second = next((cause for cause in causes[1:] if points[cause] > 0), None)
    runner_up = (
        RunnerUp(second, leading[second].opinion.weight, first.opinion.would_decide)
        if second is not None
        else None
    )
    if confidence < ANSWERED:
        return _abstain(first, second, leading, causes, _shares(points, whole), ordered)
    contributing = tuple(
        Contribution(cause, round(shares[cause], 3))
        for cause in causes[1:]
        if shares[cause] >= PART_OF_ANSWER
    )
    verdict = Verdict(
        cause=first.opinion.cause,
        confidence=round(confidence, 3),
        engine=first.case.timeline.engine,
        onset=_first_onset(first, ordered),
        end=first.opinion.end,
        summary=first.opinion.summary,
        contributing=contributing,
        runner_up=runner_up,
        missing=first.opinion.missing,
    )
    return verdict, roles(ordered, verdict)


def _shares(points: Mapping[str, float], whole: float) -> dict[str, float]:
    """Share out what all falls took; causes of one fall may overlap (a hog is a capacity loss)."""
    shares = {cause: min(1.0, value / whole) for cause, value in points.items()}
    total = sum(shares.values())
    return {cause: share / total for cause, share in shares.items()} if total > 1.0 else shares


def _first_onset(leading: Judged, ordered: Sequence[Judged]) -> tuple[float, float] | None:
    """Give where the leading cause first struck: bursts of one cause are one incident."""
    strikes = [
        item.opinion.onset
        for item in ordered
        if item.opinion.cause == leading.opinion.cause
        and item.case.timeline.engine == leading.case.timeline.engine
        and item.opinion.onset is not None
        and fall(item.case) >= _COMPARABLE * fall(leading.case)
        and item.opinion.weight >= ANSWERED
    ]
    return min(strikes, default=leading.opinion.onset)


def _abstain(
    first: Judged,
    second: str | None,
    leading: dict[str, Judged],
    causes: Sequence[str],
    shares: dict[str, float],
    ordered: Sequence[Judged],
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Say what the candidates are, most likely first, and what would decide."""
    episode = first.case.episode
    candidates = tuple((cause, round(shares[cause], 3)) for cause in causes)
    summary = Message(
        "verdict.insufficient",
        {
            "first": first.opinion.cause,
            "first_weight": shares[first.opinion.cause],
            "second": second,
            "second_weight": shares[second] if second else None,
            "engine": first.case.timeline.engine,
            "before": episode.before if episode else None,
            "after": episode.level if episode else None,
        },
    )
    verdict = Verdict(
        cause=INSUFFICIENT,
        confidence=round(first.opinion.weight, 3),
        engine=first.case.timeline.engine,
        onset=first.opinion.onset,
        end=first.opinion.end,
        summary=summary,
        contributing=tuple(
            Contribution(cause, share) for cause, share in candidates if share >= PART_OF_ANSWER
        ),
        runner_up=RunnerUp(
            first.opinion.cause, round(first.opinion.weight, 3), first.opinion.would_decide
        ),
        candidates=candidates,
        missing=first.opinion.missing,
    )
    return verdict, roles(ordered, verdict)


def _unexplained(case: Case, ordered: Sequence[Judged]) -> tuple[Verdict, tuple[Weighing, ...]]:
    episode = case.episode
    if episode is None:
        raise AssertionError("a fall has an episode")
    summary = Message(
        "verdict.unexplained",
        {"engine": case.timeline.engine, "before": episode.before, "after": episode.level},
    )
    verdict = Verdict(
        INSUFFICIENT, 0.5, case.timeline.engine, episode.onset, None, summary,
        missing=("request contents", "prompt_tokens_by_source", "block histograms"),
    )  # fmt: skip
    return verdict, roles(ordered, verdict)
