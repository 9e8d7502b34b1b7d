"""KV203 long-context-hog: one or a few very long requests own the pool.

What it detects
    An exhausted pool with few running requests, each of which holds a large part of it.

Why it matters
    Lowering max_num_seqs barely helps: the batch is small already. The requests are too long for
    the pool, or one generation runs away.

Evidence it needs
    KV usage and running; prompt and output length histograms when there are any.

How it decides
    In the exhausted points, or while others wait behind requests of half the pool each, a running
    request holds on average at least a tenth of the pool, and at
    least twice what it held before. It must also hold clearly more than prompt and output of the
    mean request of that time: a mean over running requests leans to those that are long and stay.

When it is silent
    Many requests share the pool, or requests were that large all along in a healthy state; or all
    of them are that large, as a batch job's are: that is the traffic, not a few of it.

False positives
    A pool that is tiny for its model: then pool-too-small says so as well.

What to do
    Cap max_model_len or max_tokens, give long requests their own replica, grow the pool.

Versions
    All.

References
    Recording k- of the corpus; observed.md 8.
"""

from dataclasses import dataclass

import numpy as np

from forensics.attribution import figures
from forensics.catalog.messages import Message
from forensics.episodes import Span, runs
from rules.actions import grow_pool
from rules.exhaustion import Exhaustion, exhaustions
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.windows import seen_in


@dataclass(frozen=True, slots=True)
class LongContextHogParams(Params):
    """Thresholds.

    Attributes:
        footprint: mean share of the pool per running request; 0.1: ten such requests fill it
            (guess).
        growth: footprint against the time before; 2 (guess).
        peak: usage that makes a burst of long requests worth a finding even when no sample shows
            a full pool (observed.md 8).
        most: share of the pool per running request from which one more does not fit, whatever
            usage is; 0.5 by arithmetic.
        apart: what a running request holds against prompt and output of the mean request; at most
            1 where all are alike (three recordings with hogs: 2.0 to 2.9, a batch job: 0.9).
        passed: requests per running one that make a mean; of fewer, the long ones are most (guess).
    """

    footprint: float = 0.1
    growth: float = 2.0
    peak: float = 0.9
    most: float = 0.5
    apart: float = 1.5
    passed: float = 3.0


class LongContextHog:
    """The rule. See the module docstring."""

    id = "KV203"
    name = "long-context-hog"
    title = "One or a few very long requests own the pool"
    severity = Severity.WARNING
    needs = ("kv_usage", "running")
    scope = "both"

    def __init__(self, params: LongContextHogParams | None = None) -> None:
        self.params = params or LongContextHogParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Judge a fall by the requests that filled the pool in it, or the whole window."""
        found = [(item, self.params.peak) for item in exhaustions(case.timeline)]
        found += [(item, 0.0) for item in self._dominated(case)]
        hogs = [
            (item, self._footprints(case, item, peak))
            for item, peak in found
            if self._within(case, item)
        ]
        hogs = [
            (item, prints)
            for item, prints in hogs
            if self._is_hog(prints) and self._is_apart(case, item, prints[1])
        ]
        if not hogs:
            return None
        item, (before, after) = max(hogs, key=lambda pair: pair[1][1])
        seen = seen_in(case, item.run.inside, item.run.baseline)
        share = None
        # A full pool and a queue before it are what a hog does: it names the cause behind KV201.
        weight = 0.93
        if case.episode is not None:
            # Long unique prompts take the blocks and bring their own misses: both parts are theirs.
            parts = ("capacity", "diversity") if case.attribution is not None else ()
            share = sum(case.attribution.share(part) for part in parts) if case.attribution else 0.0
            weight = 0.9 * min(1.0, share)
        place = case.timeline.place("kv_usage", item.run.onset[1])
        shown = Exhibit(
            "usage_per_running", before, after, "share of the pool per running request", place
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=weight,
            severity=self.severity,
            summary=Message(
                "KV203.summary",
                {"engine": case.timeline.engine, "footprint": after, "running": seen.after.running},
            ),
            share=share,
            onset=case.episode.onset if case.episode else item.pressure_onset,
            end=None if item.run.open_ended else item.run.end,
            for_=(shown, *compare(seen, "usage_max", "running", "prompt_len", "output_len")),
            against=compare(seen, "requests_per_s"),
            actions=(
                Action(
                    Message("KV203.cap"), Message("KV203.cap_effect"), "--max-model-len <tokens>"
                ),
                Action(Message("KV203.separate"), Message("KV203.separate_effect"), None, 2),
                grow_pool(case, 3),
            ),
        )

    def _within(self, case: Case, item: Exhaustion) -> bool:
        if case.episode is None:
            return True
        early = case.episode.onset[0] - 30.0
        return item.run.end >= early and item.run.onset[1] <= case.episode.end + 30.0

    def _dominated(self, case: Case) -> list[Exhaustion]:
        """Give the runs in which a request or two held most of the pool and others waited."""
        grid = case.timeline.grid
        if not grid.height or not case.timeline.has("waiting"):
            return []
        usage, running, waiting = (
            grid[name].fill_null(0.0).to_numpy() for name in ("kv_usage", "running", "waiting")
        )
        holds = (waiting >= 1) & (running >= 1)
        holds &= usage >= self.params.most * np.maximum(running, 1)
        times = grid["time"].to_numpy()
        return [
            Exhaustion(run, run.onset, None, 0)
            for run in runs(times, np.asarray(holds), case.timeline.step_s)
        ]

    def _footprints(self, case: Case, item: Exhaustion, peak: float) -> tuple[float | None, float]:
        """Give the mean pool share of a running request before and while the pool was full."""
        inside = case.timeline.grid[item.run.first : item.run.last + 1].drop_nulls(
            ["kv_usage", "running"]
        )
        full = inside.filter((inside["kv_usage"] >= peak) & (inside["running"] > 0))
        if not full.height:
            return (None, 0.0)
        after = float((full["kv_usage"] / full["running"]).median() or 0.0)  # type: ignore[arg-type]
        if item.run.first == 0:
            return (None, after)
        calm = Span(case.window[0] - 1.0, item.pressure_onset[0])
        before = figures(case.timeline, calm, case.epoch.pool.tokens).usage_per_running
        return (before, after)

    def _is_hog(self, prints: tuple[float | None, float]) -> bool:
        before, after = prints
        grown = before is None or after >= self.params.growth * before
        return after >= self.params.footprint and grown

    def _is_apart(self, case: Case, item: Exhaustion, held: float) -> bool:
        """Tell whether running requests hold more than the mean one is long; True if unknown."""
        pool = case.epoch.pool.tokens
        seen = figures(case.timeline, item.run.inside, pool)
        if held >= self.params.most or (seen.requests or 0.0) < self.params.passed * (
            seen.running or 0.0
        ):
            return True
        if pool is None or seen.prompt_len is None or seen.output_len is None:
            return True
        return held * pool >= self.params.apart * (seen.prompt_len + seen.output_len)
