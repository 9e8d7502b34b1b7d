"""Opinions → verdict: one primary cause, contributing ones with shares, or an honest abstention.

Falls of the hit rate come first: each cause gets the points it took over all falls, and the one
that took most leads. Without a fall, the strongest opinion about the window leads. What took no
hits is reported among the findings and never as a share. Requests that became slow without any
cause at work are said to be so, with the part of their time that grew: that is not health. A
verdict is given only when its confidence passes `ANSWERED`; else the answer is
`insufficient-evidence` with both weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.attribution import behind_ttft
from forensics.catalog.messages import Message
from forensics.episodes import Episode
from rules.interface import Case, Opinion, Severity

HEALTHY = "healthy"
INSUFFICIENT = "insufficient-evidence"

ANSWERED = 0.5
"""Least confidence of a verdict: a cause that is less likely than not is not named."""
OBSERVED = 0.3
"""Least weight of a finding beside the verdict: below it the evidence speaks against (guess)."""
PART_OF_ANSWER = 0.2
"""Share of the whole fall from which a cause counts as part of the answer (JSON contract)."""
_EXPLAINS_HITS = (
    "preemption-cliff",
    "cold-cache",
    "caching-disabled",
    "sub-block-prefix",
    "long-context-hog",  # fills the pool, preempting or not, and leaves no block to others
)
_FATAL = frozenset({"engine-crash", "pool-too-small", "engine-stall"})
_FATAL_WEIGHT = 0.9
# Episodes of one cause at least half as large as its largest belong to the same incident (guess).
_COMPARABLE = 0.5
# Without a fall: what stops service leads over what slows it, which leads over what is merely so.
_RANK = {Severity.CRITICAL: 2, Severity.WARNING: 1, Severity.INFO: 0}


@dataclass(frozen=True, slots=True)
class Contribution:
    """A further cause and its share of the fall (None where no fall is shared out)."""

    cause: str
    share: float | None


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The cause that came second, and the measurement that would decide between the two."""

    cause: str
    confidence: float
    would_decide: Message | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is held to be true of the whole input.

    Attributes:
        cause: one of the causes, `healthy` or `insufficient-evidence`.
        confidence: 0-1, calibrated.
        engine: where; None when it concerns all.
        onset: (earliest, latest) UTC seconds; None without an incident.
        end: UTC seconds; None when it goes on or there was none.
        summary: one sentence.
        contributing: other causes that are part of the answer (share of at least 0.2).
        candidates: with `insufficient-evidence`, the causes weighed, most likely first.
        missing: what would have been needed, by name.
    """

    cause: str
    confidence: float
    engine: str | None
    onset: tuple[float, float] | None
    end: float | None
    summary: Message
    contributing: tuple[Contribution, ...] = ()
    runner_up: RunnerUp | None = None
    candidates: tuple[tuple[str, float], ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """An opinion and the case it is about."""

    case: Case
    opinion: Opinion

    @property
    def points(self) -> float:
        """Hit-rate points that this cause took in its case; 0 without a fall.

        A dip that came back by itself counts half, unless an event emptied the cache: what lasts is
        what the operator asks about.
        """
        episode, attribution = self.case.episode, self.case.attribution
        if episode is None or self.opinion.share is None:
            return 0.0
        passing = episode.recovered and (attribution is None or attribution.share("cold") == 0.0)
        return (episode.before - episode.level) * self.opinion.share * (0.5 if passing else 1.0)


@dataclass(frozen=True, slots=True)
class Weighing:
    """What became of an opinion: primary, contributing, runner-up, also-observed or rejected."""

    judged: Judged
    role: str


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
        return _by_state(fatal, ordered)
    if falls:
        return _by_falls(ordered, falls)
    states = [item for item in ordered if item.case.episode is None]
    strong = [item for item in states if item.opinion.weight >= ANSWERED]
    if missing:  # something happened to the hits that a state does not explain
        strong = [item for item in strong if item.opinion.cause in _EXPLAINS_HITS]
    if strong:
        return _by_state(strong, ordered)
    if slow is not None and slow.episode is not None:
        return _slow(slow, slow.episode, states, ordered)
    if missing or states:
        named = tuple(dict.fromkeys([*missing, *(m for i in states for m in i.opinion.missing)]))
        return _undecided_state(states, ordered, named)
    summary = Message("verdict.healthy", {"engine_note": ""})
    verdict = Verdict(HEALTHY, 0.95, None, None, None, summary)
    return verdict, tuple(Weighing(item, "also-observed") for item in ordered)


def _by_falls(
    ordered: Sequence[Judged], falls: Sequence[Case]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    whole = sum(_fall(case) for case in falls)
    points: dict[str, float] = {}
    leading: dict[str, Judged] = {}
    for item in ordered:
        if item.case.episode is None:
            continue
        cause = item.opinion.cause
        best = leading.get(cause)
        points[cause] = points.get(cause, 0.0) + item.points
        if best is None or item.points > best.points:
            leading[cause] = item
    causes = sorted(points, key=lambda cause: (-points[cause], cause))
    if not causes:
        largest = max(falls, key=_fall)
        return _unexplained(largest, ordered)
    first = leading[causes[0]]
    confidence = first.opinion.weight
    shares = {cause: min(1.0, points[cause] / whole) for cause in causes}
    total = sum(shares.values())
    if total > 1.0:  # causes of one fall may overlap (a hog is a capacity loss too)
        shares = {cause: share / total for cause, share in shares.items()}
    second = next((cause for cause in causes[1:] if points[cause] > 0), None)
    runner_up = (
        RunnerUp(second, leading[second].opinion.weight, first.opinion.would_decide)
        if second is not None
        else None
    )
    if confidence < ANSWERED:
        return _abstain(first, second, leading, causes, shares, ordered)
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
    return verdict, _roles(ordered, verdict)


def _first_onset(leading: Judged, ordered: Sequence[Judged]) -> tuple[float, float] | None:
    """Give where the leading cause first struck: bursts of one cause are one incident."""
    strikes = [
        item.opinion.onset
        for item in ordered
        if item.opinion.cause == leading.opinion.cause
        and item.case.timeline.engine == leading.case.timeline.engine
        and item.opinion.onset is not None
        and _fall(item.case) >= _COMPARABLE * _fall(leading.case)
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
    return verdict, _roles(ordered, verdict)


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
    return verdict, _roles(ordered, verdict)


def _by_state(
    strong: Sequence[Judged], ordered: Sequence[Judged]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    ranked = sorted(
        strong,
        key=lambda item: (
            -_RANK[item.opinion.severity],
            -item.opinion.weight,
            item.opinion.rule_id,
            item.case.timeline.engine,
        ),
    )
    first = ranked[0]
    others = [item for item in ranked[1:] if item.opinion.cause != first.opinion.cause]
    runner_up = (
        RunnerUp(
            others[0].opinion.cause, round(others[0].opinion.weight, 3), first.opinion.would_decide
        )
        if others
        else None
    )
    verdict = Verdict(
        cause=first.opinion.cause,
        confidence=round(first.opinion.weight, 3),
        engine=first.case.timeline.engine,
        onset=first.opinion.onset,
        end=first.opinion.end,
        summary=first.opinion.summary,
        runner_up=runner_up,
        missing=first.opinion.missing,
    )
    return verdict, _roles(ordered, verdict)


def _slow(
    case: Case, episode: Episode, states: Sequence[Judged], ordered: Sequence[Judged]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Say that requests became slow, which part of their time grew, and that no cause shows."""
    ttft = episode.signal == "ttft_s"
    part = behind_ttft(case.before, case.after) if ttft else "decode"
    ranked = sorted(states, key=lambda item: (-item.opinion.weight, item.opinion.rule_id))
    verdict = Verdict(
        cause=INSUFFICIENT,
        confidence=0.5,
        engine=case.timeline.engine,
        onset=episode.onset,
        end=episode.end if episode.recovered else None,
        summary=Message(
            f"verdict.slow_{part or 'ttft'}",
            {
                "engine": case.timeline.engine,
                "before": episode.before,
                "after": episode.level,
                "queue_before": case.before.queue_s if case.before else None,
                "queue_after": case.after.queue_s,
                "prefill_before": case.before.prefill_s if case.before else None,
                "prefill_after": case.after.prefill_s,
            },
        ),
        candidates=tuple((i.opinion.cause, round(i.opinion.weight, 3)) for i in ranked),
        missing=tuple(
            f"vllm:request_{name}_time_seconds"
            for name in ("queue", "prefill")
            if getattr(case.after, f"{name}_s") is None
        ),
    )
    return verdict, _roles(ordered, verdict)


def _undecided_state(
    states: Sequence[Judged], ordered: Sequence[Judged], missing: tuple[str, ...]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    ranked = sorted(states, key=lambda item: (-item.opinion.weight, item.opinion.rule_id))
    candidates = tuple((i.opinion.cause, round(i.opinion.weight, 3)) for i in ranked)
    if not missing:
        summary = Message("verdict.healthy", {"engine_note": ""})
        return Verdict(HEALTHY, 0.8, None, None, None, summary), _plain(ordered)
    first = ranked[0] if ranked else None
    verdict = Verdict(
        cause=INSUFFICIENT,
        confidence=round(first.opinion.weight, 3) if first else 0.5,
        engine=first.case.timeline.engine if first else None,
        onset=first.opinion.onset if first else None,
        end=first.opinion.end if first else None,
        summary=Message("verdict.nothing", {"missing": ", ".join(missing)}),
        runner_up=(
            RunnerUp(first.opinion.cause, round(first.opinion.weight, 3),
                     first.opinion.would_decide)
            if first
            else None
        ),
        candidates=candidates,
        missing=missing,
    )  # fmt: skip
    return verdict, _roles(ordered, verdict)


def _roles(ordered: Sequence[Judged], verdict: Verdict) -> tuple[Weighing, ...]:
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
            role = "also-observed" if item.opinion.weight >= OBSERVED else "rejected"
        result.append(Weighing(item, role))
    return tuple(result)


def _plain(ordered: Sequence[Judged]) -> tuple[Weighing, ...]:
    return tuple(Weighing(item, "rejected") for item in ordered)


def _fall(case: Case) -> float:
    return case.episode.before - case.episode.level if case.episode is not None else 0.0
