"""PC104 cold-cache: a restart, scale-out or cache reset emptied the cache.

What it detects
    A fall of the hit rate that begins at a restart, a prefix-cache reset or a wake-up from sleep.

Why it matters
    It recovers by itself: an alert on the dip is noise, a crash loop behind it is not.

Evidence it needs
    The interval hit rate, and a restart (start-up lines, a new process start time, counters that
    begin again) or a reset (``Successfully reset prefix cache``, sleep).

How it decides
    By the cold part of the fall (attribution): the event lies between the last sample before the
    fall and the first after it. What does not recover is judged as a further loss. A dip too brief
    to be an incident is reported where a latency rose with it.

When it is silent
    No such event lies at the onset; or hits came back and requests stay slow to the end.

False positives
    A restart with a smaller pool: the dip is cold, what stays afterwards is eviction.

What to do
    Nothing, or warm the shared prompts before taking traffic; look for the reason of the restart.

Versions
    V1 logs resets from 0.7.0; _created samples and process_start_time_seconds prove restarts.

References
    Recording e- of the corpus; diagnosis reference 1.4 and 3.2; memory model reference 5.
"""

from dataclasses import dataclass

import polars as pl

from forensics.attribution import figures
from forensics.catalog.messages import Message
from forensics.episodes import Episode, Span, event_dips
from forensics.timeline import Mark
from rules.actions import wait_or_warm
from rules.exhibits import compare
from rules.interface import Case, Exhibit, Opinion, Params, Severity
from rules.windows import rate_is_seen

EMPTYING = ("restart", "start", "reset", "sleep")


@dataclass(frozen=True, slots=True)
class ColdCacheParams(Params):
    """Thresholds.

    Attributes:
        least_share: below this share of the fall the rule is silent (guess: resolution of the
            attribution).
        least_fall: points by which the printed rate must be lower; the noise limit of diagnosis.md.
        from_log: weight on stats lines alone, where nothing shows whether it came back (guess).
        not_back: weight when the printed rate has not come back: something else may hold it down.
        back: share of the loss that must have come back (diagnosis.md 3.2).
        slack_s: an event this much before the last good sample still counts, since logs and
            metrics are aligned to a stats interval only; seconds.
        beside: weight when the dip is certain and most of the fall has another reason (guess).
        slow_start: weight when a brief dip and slow requests begin with one event: what waited for
            the server comes in at once, too (guess).
    """

    least_share: float = 0.1
    least_fall: float = 0.05
    from_log: float = 0.7
    not_back: float = 0.45
    back: float = 0.5
    slack_s: float = 30.0
    beside: float = 0.6
    slow_start: float = 0.75


class ColdCache:
    """The rule. See the module docstring."""

    id = "PC104"
    name = "cold-cache"
    title = "A restart or reset emptied the cache"
    severity = Severity.INFO
    needs = ("hit_rate|logged_hit_rate",)
    scope = "both"

    def __init__(self, params: ColdCacheParams | None = None) -> None:
        self.params = params or ColdCacheParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge one fall by its cold part, or a printed rate that begins anew with a process."""
        if case.episode is None:
            return self._slow_start(case) if rate_is_seen(case.timeline) else self._from_log(case)
        if case.attribution is None:
            return None
        share = case.attribution.share("cold")
        early, late = case.episode.onset
        events = [
            mark
            for mark in case.timeline.marks
            if mark.kind in EMPTYING
            and early - self.params.slack_s <= mark.time <= late + self.params.slack_s
        ]
        if share < self.params.least_share:
            return self._first_minutes(case, case.episode, events, share)
        shown = tuple(
            Exhibit(mark.kind, None, mark.text, "event", mark.place) for mark in events[:3]
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.97 * share if events else 0.8 * share,
            severity=self.severity if case.episode.recovered else Severity.WARNING,
            summary=Message(
                "PC104.summary" if case.episode.recovered else "PC104.not_back",
                {
                    "engine": case.timeline.engine,
                    "before": case.episode.before,
                    "after": case.episode.level,
                    "event": events[0].text if events else None,
                },
            ),
            share=share,
            onset=case.episode.onset,
            end=case.episode.end if case.episode.recovered else None,
            for_=(*shown, *compare(case, "hit_rate", "usage")),
            against=compare(case, "preemptions", "waiting"),
            actions=(wait_or_warm(1),),
        )

    def _first_minutes(
        self, case: Case, episode: Episode, events: list[Mark], share: float
    ) -> Opinion | None:
        """Report the dip right after an event whose fall has another reason for the most part."""
        if not any(mark.kind in ("restart", "reset", "sleep") for mark in events):
            return None
        begun = episode.onset[1] - case.timeline.step_s
        first = Span(begun, begun + max(self.params.slack_s, 3 * case.timeline.step_s))
        low = figures(case.timeline, first).hit_rate
        if low is None or episode.level - low < self.params.least_fall:
            return None
        place = case.timeline.place("hit_rate", episode.onset[1])
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=self.params.beside,
            severity=self.severity,
            summary=Message(
                "PC104.first_minutes",
                {
                    "engine": case.timeline.engine,
                    "event": events[0].text,
                    "low": low,
                    "level": episode.level,
                },
            ),
            share=share,
            onset=episode.onset,
            end=first.end,
            for_=(
                Exhibit("hit_rate", episode.before, low, "ratio", place),
                *(Exhibit(mark.kind, None, mark.text, "event", mark.place) for mark in events[:3]),
            ),
            actions=(wait_or_warm(1),),
        )

    def _slow_start(self, case: Case) -> Opinion | None:
        """Report a dip too brief to be an incident where requests became slow with it."""
        slow = case.slow
        if slow is None:
            return None
        early, late = slow.onset[0] - self.params.slack_s, slow.onset[1] + self.params.slack_s
        for dip in event_dips(case.timeline, passing=True):
            begun = [
                mark
                for mark in case.timeline.marks
                if mark.kind in EMPTYING and dip.onset[0] <= mark.time <= dip.onset[1]
            ]
            if not begun or dip.onset[1] < early or dip.onset[0] > late:
                continue
            longest = max(self.params.slack_s, dip.end - dip.onset[0])
            if not slow.recovered and slow.end - dip.end > longest:
                continue  # hits came back and requests stay slow: by something else
            return Opinion(
                rule_id=self.id,
                cause=self.name,
                weight=self.params.slow_start,
                severity=self.severity,
                summary=Message(
                    f"PC104.slow_{slow.signal}",
                    {
                        "engine": case.timeline.engine,
                        "event": begun[0].text,
                        "before": dip.before,
                        "low": dip.level,
                        "calm": slow.before,
                        "slow": slow.level,
                    },
                ),
                onset=dip.onset,
                end=slow.end if slow.recovered else None,
                for_=(
                    *(Exhibit(m.kind, None, m.text, "event", m.place) for m in begun[:3]),
                    Exhibit(
                        "hit_rate", dip.before, dip.level, "ratio",
                        case.timeline.place("hit_rate", dip.onset[1]),
                    ),
                    Exhibit(
                        slow.signal, slow.before, slow.level, "s",
                        case.timeline.place(slow.signal, slow.onset[1]),
                    ),
                ),
                actions=(wait_or_warm(1),),
            )  # fmt: skip
        return None

    def _from_log(self, case: Case) -> Opinion | None:
        """Judge stats lines alone: a new process prints a rate well below what the old one printed.

        A new process begins at 0.0 % and climbs as it fills; only rates with traffic behind them
        are compared.
        """
        grid = case.timeline.grid.filter(
            pl.col("logged_hit_rate").is_not_null() & (pl.col("prompt_tps") > 0)
        )
        for mark in case.timeline.marks:
            if mark.kind not in ("restart", "reset"):
                continue
            old = grid.filter(pl.col("time") <= mark.time)["logged_hit_rate"].tail(3)
            new = grid.filter(pl.col("time") > mark.time).head(3)
            if not old.len() or not new.height:
                continue
            before, after = float(old[-1]), float(new["logged_hit_rate"][0])
            if before - after < self.params.least_fall:
                continue
            latest = grid.filter(pl.col("time") > mark.time)["logged_hit_rate"].tail(3)
            back = before - float(latest[-1]) <= (1.0 - self.params.back) * (before - after)
            place = case.timeline.place("logged_hit_rate", float(new["time"][0]))
            last = float(grid.filter(pl.col("time") <= mark.time)["time"][-1])
            return Opinion(
                rule_id=self.id,
                cause=self.name,
                weight=self.params.from_log if back else self.params.not_back,
                severity=self.severity,
                summary=Message(
                    "PC104.from_log",
                    {
                        "engine": case.timeline.engine,
                        "before": before,
                        "after": after,
                        "event": mark.text,
                    },
                ),
                onset=(last, float(new["time"][0])),
                for_=(
                    Exhibit(mark.kind, None, mark.text, "event", mark.place),
                    Exhibit("logged_hit_rate", before, after, "ratio", place),
                ),
                actions=(wait_or_warm(1),),
                missing=("prefix-cache counters",),
            )
        return None
