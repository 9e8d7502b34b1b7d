"""SCH306 client-aborts: clients give up in numbers.

What it detects
    A large share of requests that are cancelled before they finish: time-outs, disconnects.

Why it matters
    The server works for nobody, and the aborts hardly show in its metrics.

Evidence it needs
    Abort lines (request logging), the abort counter, or first tokens beside finished requests.

How it decides
    In a run, at least a fifth of the requests that ended were aborted, by lines or counter; or
    first tokens outnumber ended requests by as much while running does not grow (0.32 leaves the
    abort counter at zero: 802 aborts showed as 1,565 first tokens against 804 ends).

When it is silent
    Nothing counts aborts and first tokens match the ends.

False positives
    A burst still in flight at the end of the data: requests in flight are subtracted.

What to do
    Look at the clients' time-outs; shorten the queue so that answers come before they expire.

Versions
    V1 with request logging; the counter carries aborts in some releases only.

References
    Recording i- of the corpus; observed.md 11.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.catalog.messages import Message
from forensics.episodes import Run, runs
from rules.actions import admission_limit
from rules.exhibits import compare
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity
from rules.windows import seen_in


@dataclass(frozen=True, slots=True)
class ClientAbortsParams(Params):
    """Thresholds.

    Attributes:
        share: aborted share of ended requests; 0.2 (guess: every fifth answer is wasted).
        least: aborts that must have happened; 10 (guess).
        window_s: aborts are counted over this many seconds before each point (guess: a few stats
            intervals).
    """

    share: float = 0.2
    least: float = 10.0
    window_s: float = 20.0


class ClientAborts:
    """The rule. See the module docstring."""

    id = "SCH306"
    name = "client-aborts"
    title = "Clients give up in numbers"
    severity = Severity.WARNING
    needs = ("aborted|first_tokens",)
    scope = "window"

    def __init__(self, params: ClientAbortsParams | None = None) -> None:
        self.params = params or ClientAbortsParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Find the run with most aborts, by count or by missing ends."""
        for amounts, counted in ((self._counted(case), True), (self._missing_ends(case), False)):
            if amounts is None:
                continue
            opinion = self._judge(case, *amounts, counted=counted)
            if opinion is not None:
                return opinion
        return None

    def _counted(self, case: Case) -> tuple[pl.DataFrame, np.ndarray, np.ndarray] | None:
        grid = case.timeline.grid
        if not case.timeline.has("aborted"):
            return None
        ended = "finished" if case.timeline.has("finished") else "ended"
        aborted = grid["aborted"].fill_null(0.0).to_numpy()
        return grid, aborted, grid[ended].fill_null(0.0).to_numpy() + aborted

    def _missing_ends(self, case: Case) -> tuple[pl.DataFrame, np.ndarray, np.ndarray] | None:
        if not (case.timeline.has("first_tokens") and case.timeline.has("ended")):
            return None
        # A preempted request has its first token and waits: it is still in flight.
        # Where it is not known how many ran before, all that run now may be new.
        more = pl.col("running") - pl.col("running").shift(1).fill_null(0.0)
        queued = pl.col("waiting").diff().fill_null(0.0)
        grid = case.timeline.grid.with_columns(
            grown=pl.max_horizontal(more, more + queued)
        ).drop_nulls(["first_tokens", "ended"])
        begun, ended = grid["first_tokens"].to_numpy(), grid["ended"].to_numpy()
        grown = grid["grown"].to_numpy()
        return grid, begun - ended - grown, begun

    def _judge(
        self,
        case: Case,
        grid: pl.DataFrame,
        aborted: np.ndarray,
        ended: np.ndarray,
        *,
        counted: bool,
    ) -> Opinion | None:
        width = max(1, round(self.params.window_s / max(case.timeline.step_s, 1e-9)))
        kernel = np.ones(width)
        lost = np.convolve(aborted, kernel)[: aborted.size]
        whole = np.convolve(ended, kernel)[: ended.size]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(whole > 0, lost / whole, 0.0)
        holds = (share >= self.params.share) & (lost >= self.params.least / 2)
        found = runs(grid["time"].to_numpy(), np.asarray(holds), case.timeline.step_s)
        sums = [(float(aborted[run.first : run.last + 1].sum()), run) for run in found]
        sums = [item for item in sums if item[0] >= self.params.least]
        if not sums:
            return None
        total, run = max(sums, key=lambda item: item[0])
        whole_run = float(ended[run.first : run.last + 1].sum())
        part = total / whole_run if whole_run else 0.0
        if part < self.params.share:
            return None
        first = self._first_abort(grid, aborted, run)
        seen = seen_in(case, run.inside, run.baseline)
        signal = "aborted" if counted else "first_tokens"
        shown = Exhibit(
            "aborted" if counted else "first tokens without an end", None, total, "requests",
            case.timeline.place(signal, run.onset[1]),
        )  # fmt: skip
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.93 if counted else 0.75,
            severity=self.severity,
            summary=Message(
                "SCH306.summary" if counted else "SCH306.missing",
                {"engine": case.timeline.engine, "aborted": total, "share": part},
            ),
            onset=first,
            end=None if run.open_ended else run.end,
            for_=(shown, *compare(seen, "requests_per_s", "ttft_s", "e2e_s")),
            against=compare(seen, "preemptions", "hit_rate", "usage_max"),
            actions=(
                Action(Message("SCH306.timeouts"), Message("SCH306.timeouts_effect"), None),
                admission_limit(case, 2),
            ),
            missing=() if counted else ("abort lines (--enable-log-requests)",),
        )

    def _first_abort(
        self, grid: pl.DataFrame, aborted: np.ndarray, run: Run
    ) -> tuple[float, float]:
        """Give the interval in which the aborts of a run began; the run lags by its window."""
        times = grid["time"].to_numpy()
        at = run.first
        while at > 0 and aborted[at - 1] > 0 and run.first - at < 64:
            at -= 1
        return (float(times[max(0, at - 1)]), float(times[at]))
