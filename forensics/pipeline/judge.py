"""One engine → its cases, what every rule thinks of them, and what could not be asked.

An analysis of one engine needs nothing from another, apart from rules that compare replicas.
"""

from dataclasses import dataclass

import polars as pl

from forensics.attribution import Contents, Figures, as_counted, attribute, figures
from forensics.attribution.physics import exhausted
from forensics.catalog.messages import Message
from forensics.episodes import (
    SAME_FALL_S,
    Changes,
    Episode,
    Span,
    busy,
    changes_of,
    judged_singly,
    pauses,
    still,
)
from forensics.episodes.printed_rate import LIFETIME, REQUESTS, STEPS, printed_fall
from forensics.timeline import EngineTimeline
from forensics.verdict import Judged
from rules import RULES, Case, Opinion, missing_for

# A rule that took most of a fall has said what it has to say of that time.
_MOST = 0.5
# What weighs less than this is no opinion (guess: below the resolution of any witness).
_LEAST_WEIGHT = 0.05
_ENOUGH_POINTS = 8
# Of a request's time, what it spends in a queue that is one (guess).
_LONG_IN_QUEUE = 0.1
# vLLM itself complains of a step after this long.
_PAUSE_S = 60.0
# Around the first failed scrape: log and metrics are aligned to a stats interval only. Guess.
_NEAR_END_S = 60.0
# What the server did last: light traffic leaves a single sample without a running request.
_LAST_POINTS = 2
_RATES = ("hit_rate", "logged_hit_rate")
# A pool this full in this many points may have preempted; two points are a passing peak (guess).
_FULL = 0.95
_FULL_POINTS = 3
# A printed rate that fell hides a larger fall: it is an average over what went before as well.
_AVERAGED = {
    LIFETIME: "prefix-cache counters (the logged rate is a lifetime average and fell)",
    STEPS: "prefix-cache counters (the logged rate spans an unknown number of requests and fell)",
    REQUESTS: "prefix-cache counters (the logged rate spans 1,000 requests and fell)",
}


@dataclass(frozen=True, slots=True)
class JudgedEngine:
    """What was thought of one engine.

    Attributes:
        cases: every fall of the hit rate, then the window as a whole.
        slow: the largest lasting rise of a latency; None when requests stayed as fast.
        judged: opinions with their cases.
        not_evaluated: (rule id, what was missing).
        missing: what keeps "nothing happened" from being claimed about this engine.
        unseen: what was never observed of it, so that nothing speaks of a change either.
    """

    timeline: EngineTimeline
    cases: tuple[Case, ...]
    slow: Episode | None
    judged: tuple[Judged, ...]
    not_evaluated: tuple[tuple[str, tuple[str, ...]], ...]
    missing: tuple[str, ...]
    unseen: tuple[str, ...]


def judge_engine(
    timeline: EngineTimeline, fleet: tuple[EngineTimeline, ...], contents: Contents | None = None
) -> JudgedEngine:
    """Ask every rule about every case of one engine.

    Args:
        timeline: the engine.
        fleet: all engines, for rules that compare replicas.
        contents: block hashes of the requests in its log, where there are any.
    """
    changes = changes_of(timeline)
    cases = cases_of(timeline, changes, fleet, contents)
    judged: list[Judged] = []
    not_evaluated: list[tuple[str, tuple[str, ...]]] = []
    for rule in RULES:
        missing = missing_for(rule, timeline)
        if missing:
            not_evaluated.append((rule.id, missing))
            continue
        of_rule: list[Judged] = []
        for case in cases:
            about = "window" if case.episode is None else "episode"
            if rule.scope not in (about, "both"):
                continue
            opinion = rule.evaluate(case)
            if opinion is None or not (opinion.certain or opinion.weight >= _LEAST_WEIGHT):
                continue
            if case.episode is None and any(_same(opinion, known) for known in of_rule):
                continue  # the falls, which come first, said it already and with more detail
            of_rule.append(Judged(case, opinion))
        judged += of_rule
    missing = _missing(timeline, changes.doubtful)
    return JudgedEngine(
        timeline,
        cases,
        changes.slow,
        tuple(judged),
        tuple(not_evaluated),
        missing,
        () if missing else _unseen(timeline, cases[-1].after),
    )


def cases_of(
    timeline: EngineTimeline,
    changes: Changes,
    fleet: tuple[EngineTimeline, ...],
    contents: Contents | None = None,
) -> tuple[Case, ...]:
    """Make the cases of one engine: each fall of the hit rate, then the whole window."""
    found = [as_counted(timeline, episode) for episode in changes.falls]
    found.sort(key=lambda episode: episode.onset)
    cases: list[Case] = []
    for episode in found:
        epoch = timeline.diary.at(episode.onset[1])
        pool = epoch.pool.tokens
        cases.append(
            Case(
                timeline=timeline,
                epoch=epoch,
                episode=episode,
                attribution=attribute(timeline, episode, epoch, contents),
                window=(episode.baseline.start, episode.after.end),
                before=figures(timeline, episode.baseline, pool),
                after=figures(timeline, episode.after, pool),
                slow=changes.slow,
                fleet=fleet,
            )
        )
    window = window_of(timeline)
    epoch = timeline.diary.epochs[-1]
    cases.append(
        Case(
            timeline=timeline,
            epoch=epoch,
            episode=None,
            attribution=None,
            window=window,
            before=None,
            after=figures(timeline, Span(window[0] - 1e-3, window[1]), epoch.pool.tokens),
            slow=changes.slow,
            fleet=fleet,
        )
    )
    return tuple(cases)


def window_of(timeline: EngineTimeline) -> tuple[float, float]:
    """Give the UTC seconds that an engine's evidence spans."""
    times: list[float] = []
    for frame in (timeline.grid, timeline.log_grid):
        if frame.height:
            times += [float(frame["time"][0]), float(frame["time"][-1])]
    times += [mark.time for mark in timeline.marks]
    return (min(times), max(times)) if times else (0.0, 0.0)


def reserve(timeline: EngineTimeline) -> Message | None:
    """Say what may have happened unseen on an engine that nothing speaks against."""
    seen = {name: timeline.grid[name].drop_nulls().len() for name in _RATES}
    if seen["hit_rate"] == 0 and seen["logged_hit_rate"] > 0:
        return Message("verdict.healthy_averaged")
    longest = max(pauses(timeline, _PAUSE_S), key=lambda run: run.seconds, default=None)
    if longest is None:
        return None
    return Message(
        "verdict.healthy_paused",
        {"engine": timeline.engine, "start": longest.onset[1], "seconds": longest.seconds},
    )


def _same(opinion: Opinion, known: Judged) -> bool:
    """Tell whether an opinion about the window repeats what the rule said of a fall in it."""
    episode = known.case.episode
    if episode is None or opinion.onset is None or not known.opinion.share:
        return False
    early, late = episode.onset[0] - SAME_FALL_S, episode.end + SAME_FALL_S
    return known.opinion.share >= _MOST and early <= opinion.onset[1] <= late


def _missing(timeline: EngineTimeline, doubtful: tuple[Episode, ...]) -> tuple[str, ...]:
    """Name what would be needed to tell what happened to the hits of this engine."""
    grid = timeline.grid
    if grid.height < _ENOUGH_POINTS:
        return ("enough samples or stats lines (at least eight)",)
    uncounted = not (timeline.has("preemptions") or timeline.has("preemption_lower_bound"))
    full = int((grid["kv_usage"] >= _FULL).sum())
    # Only V0 swaps, and it warns of its first preemption: no warning is a count too.
    older = timeline.diary.epochs[-1].generation == "V0" or timeline.has("swapped")
    if uncounted and full >= _FULL_POINTS and not older:
        return ("a preemption count (the pool was full, and V1 logs print no preemption)",)
    rated = grid.filter(grid["hit_rate"].is_not_null() & (grid["hit_weight"] > 0))
    rates = rated.height
    requests = rated["first_tokens"].drop_nulls().to_numpy()
    if rates >= _ENOUGH_POINTS or judged_singly(requests):
        return _too_few_requests(doubtful)
    if timeline.has("queries") and float(grid["queries"].sum()) == 0.0:
        return ()  # an idle server, or one without lookups, which another rule judges
    logged = grid["logged_hit_rate"].drop_nulls()
    if rates and not logged.len():
        return ("enough intervals with a hit rate (at least eight)",)
    span = printed_fall(timeline)
    return () if span is None else (_AVERAGED[span],)


def _too_few_requests(doubtful: tuple[Episode, ...]) -> tuple[str, ...]:
    lasting = [item for item in doubtful if not item.recovered]
    if not lasting:
        return ()
    largest = max(lasting, key=lambda item: item.before - item.level)
    counts = (largest.requests_before or 0.0, largest.requests_after or 0.0)
    step = f"from {largest.before:.2f} to {largest.level:.2f}"
    return (f"more requests (the hit rate went {step} on {min(counts):.0f}, which may be chance)",)


def _unseen(timeline: EngineTimeline, whole: Figures) -> tuple[str, ...]:
    """Name what health is made of and was never observed of this engine."""
    return (
        *_unseen_rate(timeline),
        *_unseen_queue(timeline),
        *_unseen_pool(timeline, whole),
        *_unseen_restart(timeline),
        *_unseen_end(timeline),
    )


def _unseen_pool(timeline: EngineTimeline, whole: Figures) -> tuple[str, ...]:
    """Name the usage of a pool that nothing but counted preemptions says was full."""
    return ("kv_usage",) if exhausted(whole) and not timeline.has("kv_usage") else ()


def _unseen_restart(timeline: EngineTimeline) -> tuple[str, ...]:
    """Name what the process that started last would show, where all that was watched is older."""
    watched = [float(g["time"][-1]) for g in (timeline.grid, timeline.log_grid) if g.height]
    if not watched or _started_last(timeline) <= max(watched):
        return ()
    return ("samples or stats lines of the process that started last",)


def _unseen_end(timeline: EngineTimeline) -> tuple[str, ...]:
    """Name what would tell why a server that was at work stopped answering its scrapes."""
    failed = next((mark for mark in timeline.marks if mark.kind == "unanswered"), None)
    if failed is None or any(
        mark.kind in ("stop", "engine_dead") and mark.time > failed.time - _NEAR_END_S
        for mark in timeline.marks
    ):
        return ()
    if timeline.seen_until is not None and timeline.seen_until > failed.time + _NEAR_END_S:
        return ()
    last = timeline.within(failed.time - _NEAR_END_S, failed.time).tail(_LAST_POINTS)
    if not busy(last).any() and bool(still(last).all()):
        return ()
    return ("the end of the server's log (its scrapes failed while requests were running)",)


def _started_last(timeline: EngineTimeline) -> float:
    """Give when the process that ran last was started again, UTC seconds; 0 if none was."""
    return max((mark.time for mark in timeline.marks if mark.kind == "restart"), default=0.0)


def _unseen_queue(timeline: EngineTimeline) -> tuple[str, ...]:
    """Name what would show a queue, or that the pool is not why there is one."""
    grid = timeline.grid
    waiting = grid["waiting"].drop_nulls().to_numpy()
    if waiting.size:
        return ("kv_usage",) if waiting.mean() >= 1 and not timeline.has("kv_usage") else ()
    queued, whole = (grid[name].drop_nulls().to_numpy() for name in ("queue_s", "e2e_s"))
    if queued.size and whole.size and queued.mean() < _LONG_IN_QUEUE * whole.mean():
        return ()
    return ("waiting",)


def _unseen_rate(timeline: EngineTimeline) -> tuple[str, ...]:
    """Name the hit rate where the process that ran last was never seen to have one."""
    grid = timeline.grid
    began = _started_last(timeline)
    served = grid.filter((pl.col("time") > began) & (pl.col("generation_tokens") > 0))
    if served.height >= _ENOUGH_POINTS:
        grid = served
    if any(grid[name].drop_nulls().len() for name in _RATES):
        return ()
    if timeline.diary.epochs[-1].prefix_caching is False:
        return ()  # there is none to see
    # An idle server, or one without lookups, which another rule judges.
    still = (name for name in ("queries", "generation_tokens") if timeline.has(name))
    if any(float(grid[name].sum()) == 0.0 for name in still):
        return ()
    return ("a hit rate (prefix-cache counters, or stats lines that print one)",)
