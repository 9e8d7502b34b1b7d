"""PC109 stuck-cache: traffic repeats and the pool has room, yet hits stop for everyone.

What it detects
    Hits that go to exactly zero and stay there while lookups go on, with most of the pool free, no
    preemption and no restart or reset at the onset.

Why it matters
    No setting mends it: it is a defect of the engine, and only a restart or another version brings
    the hits back. Looking for a change of traffic costs hours.

Evidence it needs
    The interval hit rate and usage; to be sure, request contents, a sister replica that kept its
    hits on the same traffic, or a restart that brought them back.

How it decides
    Zero hits, room and no preemption alone are also what a new template at the head of every prompt
    looks like, so the weight stays low, and a little less so where neither the length of prompts
    nor what a running request holds changed with the hits. It becomes strong when the requests' own
    contents still repeat, when a replica of the same model keeps its hits meanwhile, or when the
    hits came back with a restart and not before.

When it is silent
    Any request still hits, the pool was tight, blocks survive a few seconds only, a restart or
    reset lies at the onset, or the contents show that sharing ended.

False positives
    A client that was changed together with a restart.

What to do
    Restart the engine, then change to a release without the defect; keep logs with request contents
    for the report.

Versions
    V1. V0's lifetime average hides such a stop for a long time.

References
    Diagnosis reference, section 2 (what cannot be separated); observed.md 16 (hits of exactly zero
    speak for a change of traffic as long as nothing else decides).
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from rules.exhibits import compare, has_room, sides
from rules.interface import Action, Case, Opinion, Params, Severity
from rules.repeats import (
    DOUBT,
    LEAST_RESIDENCE_S,
    ROOM,
    back_by_restart,
    lookups_may_fail,
    low_time,
    nothing_else_changed,
    peer_that_kept,
)


@dataclass(frozen=True, slots=True)
class StuckCacheParams(Params):
    """Thresholds.

    Attributes:
        least_before: hit rate that was there before, ratio; 0.1 separates a cache that worked from
            one that hardly did (guess).
        room: usage that leaves no doubt that the pool had room, ratio (guess).
        least_residence_s: shorter survival of blocks explains any miss, seconds; the probe of
            diagnosis.md section 2 begins at gaps of 5 and 15 s.
        least_requests: behind the zero; 100 is diagnosis.md, section 0, less where nothing counts.
        alone: weight from counters alone, below what a verdict needs (guess).
        alone_share: share of the fall claimed then: named as a runner-up, never as a part (guess).
        alike: both of them where nothing but the hits changed: a candidate of equal rank (guess).
    """

    least_before: float = 0.1
    room: float = ROOM
    least_residence_s: float = LEAST_RESIDENCE_S
    least_requests: float = 100.0
    alone: float = 0.3
    alone_share: float = 0.1
    alike: float = DOUBT


class StuckCache:
    """The rule. See the module docstring."""

    id = "PC109"
    name = "stuck-cache"
    title = "Traffic repeats and the pool has room, yet hits stop for everyone"
    severity = Severity.CRITICAL
    needs = ("hit_rate", "kv_usage")
    scope = "episode"

    def __init__(self, params: StuckCacheParams | None = None) -> None:
        self.params = params or StuckCacheParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall of the hit rate to nothing."""
        episode = case.episode
        if episode is None or episode.before < self.params.least_before:
            return None
        told = self.params
        if not lookups_may_fail(
            case, episode, told.room, told.least_residence_s, told.least_requests
        ):
            return None
        exact = case.attribution is not None and case.attribution.basis == "exact"
        changed = case.attribution.share("diversity") if case.attribution and exact else None
        if changed is not None and changed >= 0.5:
            return None
        back, peer = back_by_restart(case, episode), peer_that_kept(case, episode)
        alike = nothing_else_changed(case)
        weight = alone = told.alike if alike else told.alone
        weight = max(weight, 0.98 * (1.0 - changed) if changed is not None else 0.0)
        weight = max(weight, 0.9 if back is not None else 0.0, 0.8 if peer is not None else 0.0)
        proven = weight > alone
        shown = [*compare(case, "hit_rate", note=Message("note.hits_zero"))]
        shown += [item for item in (back, peer) if item is not None]
        room, full = sides(case, ("usage_max",), has_room, Message("note.pool_had_room"))
        shown += room
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity if proven else Severity.WARNING,
            summary=Message(
                "PC109.summary" if proven else "PC109.undecided",
                {
                    "engine": case.timeline.engine,
                    "before": episode.before,
                    "usage": case.after.usage_max,
                },
            ),
            share=weight if proven or alike else told.alone_share,
            onset=episode.onset,
            end=low_time(case, episode).end if episode.recovered or back else None,
            for_=(*shown, *compare(case, "residence_s", "prompt_len", "requests_per_s")),
            against=(*full, *compare(case, "usage_per_running", "preemptions")),
            actions=(
                Action(Message("PC109.restart"), Message("PC109.restart_effect")),
                Action(Message("PC109.upgrade"), Message("PC109.upgrade_effect"), None, 2),
            ),
            would_decide=None if proven else Message("decide.repeat"),
            missing=() if proven else ("request contents or a second replica",),
        )
