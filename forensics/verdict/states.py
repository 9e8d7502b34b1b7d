"""Opinions about a window without a fall → the verdict, or why none is given."""

from collections.abc import Sequence

from forensics.attribution import behind_ttft
from forensics.catalog.messages import Message
from forensics.episodes import Episode
from forensics.verdict.records import HEALTHY, INSUFFICIENT, Judged, RunnerUp, Verdict, Weighing
from forensics.verdict.roles import rejected, roles
from rules.interface import Case, Severity

# A state that does not explain what happened to the hits is no answer, however clear it is itself.
_ABSTAINS = 0.49
STANDING = frozenset({"caching-disabled", "low-reuse-workload", "sub-block-prefix"})
"""So from the first request on: what happened later, or became slow, has another reason."""
# Without a fall: what stops service leads over what slows it, which leads over what is merely so.
_RANK = {Severity.CRITICAL: 2, Severity.WARNING: 1, Severity.INFO: 0}


def by_state(
    strong: Sequence[Judged], ordered: Sequence[Judged]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Name the strongest of the opinions that are strong enough, the worst state first."""
    ranked = sorted(
        strong,
        key=lambda item: (
            -_RANK[item.opinion.severity],
            item.opinion.cause in STANDING,
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
    return verdict, roles(ordered, verdict)


def slower(
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
    return verdict, roles(ordered, verdict)


def undecided(
    states: Sequence[Judged], ordered: Sequence[Judged], missing: tuple[str, ...]
) -> tuple[Verdict, tuple[Weighing, ...]]:
    """Abstain, with what was weighed and what was missing; without either, nothing happened."""
    ranked = sorted(states, key=lambda item: (-item.opinion.weight, item.opinion.rule_id))
    candidates = tuple((i.opinion.cause, round(i.opinion.weight, 3)) for i in ranked)
    if not missing:
        summary = Message("verdict.healthy")
        return Verdict(HEALTHY, 0.8, None, None, None, summary), rejected(ordered)
    first = ranked[0] if ranked else None
    verdict = Verdict(
        cause=INSUFFICIENT,
        confidence=min(_ABSTAINS, round(first.opinion.weight, 3)) if first else _ABSTAINS,
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
    return verdict, roles(ordered, verdict)
