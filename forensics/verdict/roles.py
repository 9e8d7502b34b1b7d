"""A verdict and all opinions → what became of each."""

from collections.abc import Sequence

from forensics.verdict.records import OBSERVED, Judged, Verdict, Weighing


def roles(ordered: Sequence[Judged], verdict: Verdict) -> tuple[Weighing, ...]:
    """Say what became of each opinion in a verdict."""
    contributing = {item.cause for item in verdict.contributing}
    runner_up = verdict.runner_up.cause if verdict.runner_up else None
    result: list[Weighing] = []
    primary_given = False
    for item in ordered:
        cause = item.opinion.cause
        if cause == verdict.cause:
            role = "also-observed" if primary_given else "primary"
            primary_given = True
        elif cause in contributing:
            role = "contributing"
        elif cause == runner_up:
            role = "runner-up"
        else:
            seen = item.opinion.certain or item.opinion.weight >= OBSERVED
            role = "also-observed" if seen else "rejected"
        result.append(Weighing(item, role))
    return tuple(result)


def rejected(ordered: Sequence[Judged]) -> tuple[Weighing, ...]:
    """Reject all opinions: nothing that was thought of is the case."""
    return tuple(Weighing(item, "rejected") for item in ordered)
