"""ENG502 engine-crash: a failed start, out of memory, a dead engine, a fatal error.

What it detects
    Lines with which vLLM reports that its engine died or never came up.

Why it matters
    Everything after it is a consequence; the traceback's last line names the reason.

Evidence it needs
    The server's log.

How it decides
    A death or start-failure line that no shutdown explains. When a server is told to stop, its
    processes also report dead engines; lines within two minutes after a shutdown began do not
    count.

When it is silent
    No such line, or only those of an orderly shutdown.

False positives
    A supervisor that kills the process at once leaves no shutdown line; the engine's own words then
    stand alone.

What to do
    Read the error named; fix the setting, or free memory; a crash loop is not a cache problem.

Versions
    Wordings of V0 and V1, 0.2 to 0.33.

References
    Log reference 7; recordings x- of the corpus.
"""

from dataclasses import dataclass

from forensics.catalog.messages import Message
from forensics.timeline import Mark
from rules.interface import Action, Case, Exhibit, Opinion, Params, Severity

_DEATH = ("engine_dead", "oom", "error")


@dataclass(frozen=True, slots=True)
class EngineCrashParams(Params):
    """Thresholds.

    Attributes:
        after_stop_s: deaths this long after a shutdown began belong to it; processes are killed
            after their time-out, seconds (observed: some seconds).
        lives_on_s: stats or samples this long after a death mean that the engine came back (guess:
            frozen stats lines kept coming for 9 s after a stop, observed.md 12).
    """

    after_stop_s: float = 120.0
    lives_on_s: float = 60.0


class EngineCrash:
    """The rule. See the module docstring."""

    id = "ENG502"
    name = "engine-crash"
    title = "The engine died or never came up"
    severity = Severity.CRITICAL
    needs = ()
    scope = "window"

    def __init__(self, params: EngineCrashParams | None = None) -> None:
        self.params = params or EngineCrashParams()

    def evaluate(self, case: Case) -> Opinion | None:
        """Look for a death that no shutdown explains."""
        deaths = self._unexplained(case.timeline.marks)
        last_life = case.timeline.grid["time"].max()
        alive_at = float(last_life) if isinstance(last_life, int | float) else None
        fatal = [
            mark
            for mark in deaths
            if mark.kind in ("engine_dead", "oom")
            or (mark.text == "fatal error" and self._ended(mark, case.timeline.marks, alive_at))
        ]
        if not fatal:
            return None
        first = fatal[0]
        lives_on = alive_at is not None and alive_at > first.time + self.params.lives_on_s
        seen_alive = case.timeline.grid.height > 0
        shown = tuple(
            Exhibit(mark.kind, None, mark.text, "event", mark.place) for mark in deaths[:4]
        )
        return Opinion(
            rule_id=self.id,
            cause=self.name,
            weight=0.6 if lives_on else 0.97,
            severity=self.severity,
            summary=Message(
                "ENG502.summary" if seen_alive else "ENG502.start",
                {"engine": case.timeline.engine, "error": first.text},
            ),
            onset=(first.time, first.time),
            for_=shown,
            actions=(Action(Message("ENG502.read"), Message("ENG502.read_effect"), None),),
        )

    def _unexplained(self, marks: tuple[Mark, ...]) -> list[Mark]:
        """Give the deaths that no shutdown precedes; marks come in the order of the log."""
        found: list[Mark] = []
        stopped = float("-inf")
        for mark in marks:
            if mark.kind == "stop":
                stopped = max(stopped, mark.time)
            elif mark.kind in _DEATH and mark.time - stopped > self.params.after_stop_s:
                found.append(mark)
        return found

    def _ended(self, error: Mark, marks: tuple[Mark, ...], alive_at: float | None) -> bool:
        """Tell whether the server went down with an error: a stop follows and no life after it."""
        stops = any(
            mark.kind == "stop" and 0 <= mark.time - error.time <= self.params.after_stop_s
            for mark in marks
        )
        return stops and (alive_at is None or alive_at <= error.time)
