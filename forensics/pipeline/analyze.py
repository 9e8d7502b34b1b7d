"""The pipeline itself: read, settle clocks, write diaries, judge, weigh, recommend, record."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import forensics
import parsers
from forensics.analysis import Analysis, Impact, NotEvaluated, Weighed
from forensics.attribution import Contents, contents_of
from forensics.catalog.gpus import identify, near
from forensics.catalog.versions import parse_version
from forensics.ceiling import Ceiling, recommend
from forensics.ceiling.sweep import of_engines
from forensics.ceiling.sweep_compare import Targets
from forensics.config import Options
from forensics.diary.engines import MOST_ENGINES, map_engines
from forensics.diary.write import write_diary
from forensics.errors import InputError, UsageError
from forensics.evidence import Evidence
from forensics.pipeline import views
from forensics.pipeline.impact import impact_of, outside_target
from forensics.pipeline.judge import JudgedEngine, judge_engine, reserve, window_of
from forensics.pipeline.places import Places
from forensics.pipeline.slow import slowest_case
from forensics.timeline import ClockNote, EngineTimeline, Timeline
from forensics.timeline.build import build_engine
from forensics.timeline.clip import clip
from forensics.timeline.clocks import settle
from forensics.verdict import INSUFFICIENT, Judged, Verdict, Weighing, weigh
from parsers.interface import Progress, ReadOptions
from rules import Case


@dataclass(frozen=True, slots=True)
class Outcome:
    """An analysis together with the frames behind it, for export and for anyone's own queries."""

    analysis: Analysis
    evidence: Evidence
    timeline: Timeline


def analyze(
    paths: Sequence[str], options: Options | None = None, progress: Progress | None = None
) -> Analysis:
    """Read what a server left behind and say what happened.

    Args:
        paths: logs, metrics, directories, archives, ``-``; any mix, any order.
        options: what the operator asked for.
        progress: called while long sources are read.

    Raises:
        InputError: nothing could be read, or nothing of it speaks of a vLLM engine.
        UsageError: an option is wrong.
    """
    return run(paths, options, progress).analysis


def run(
    paths: Sequence[str], options: Options | None = None, progress: Progress | None = None
) -> Outcome:
    """Do what `analyze` does and keep the frames."""
    options = options or Options()
    _check(options)
    read = ReadOptions()
    evidence = parsers.read(paths, read, progress) if progress else parsers.read(paths, read)
    return run_evidence(evidence, options, time.time())


def _check(options: Options) -> None:
    """Refuse what would be passed over in silence: it is a slip, and the result another one."""
    if options.gpu is not None and not identify(options.gpu):
        known = near(options.gpu)
        raise UsageError(
            f"--gpu {options.gpu!r} is none that is known; near it: {', '.join(known)}"
            if known
            else f"--gpu {options.gpu!r} is none that is known; give one such as H100 or A100-80GB"
        )
    if options.vllm_version is not None and parse_version(options.vllm_version) is None:
        raise UsageError(
            f"--vllm-version {options.vllm_version!r} is no release; give one such as 0.11.2"
        )


def run_evidence(evidence: Evidence, options: Options, now: float | None = None) -> Outcome:
    """Analyse evidence that was read already; see `analyze`.

    Args:
        evidence: all rows.
        options: what the operator asked for.
        now: UTC seconds of the reading: the age of what has none (standard input), which settles
            the year of a log that prints none when nothing else does.
    """
    engines = map_engines(evidence)
    if not engines.keys and not _described(evidence):
        raise InputError(_nothing_of_vllm(evidence))
    mtimes = {
        index: mtime
        for index, source in enumerate(evidence.sources)
        if (mtime := source.mtime if source.mtime is not None else now) is not None
    }
    settled = settle(evidence, engines, options.tz, mtimes)
    evidence = settled.evidence
    timelines: list[EngineTimeline] = []
    contents: list[Contents | None] = []
    for key in engines.keys:
        diary = write_diary(evidence, engines, key, options)
        timeline = build_engine(evidence, engines, key, diary)
        timelines.append(timeline)
        contents.append(contents_of(evidence, engines, key, diary))
    fleet = _clipped(timelines, options)
    judged = tuple(
        judge_engine(timeline, fleet, asked)
        for timeline, asked in zip(fleet, contents, strict=True)
    )
    analysis = _record(evidence, settled.notes, judged, options)
    analysis = replace(
        analysis, not_evaluated=(*analysis.not_evaluated, *_beyond(engines.left_out))
    )
    return Outcome(analysis, evidence, Timeline(fleet, settled.notes))


def _clipped(timelines: list[EngineTimeline], options: Options) -> tuple[EngineTimeline, ...]:
    since = options.since
    if options.since_end_s is not None and timelines:
        since = max(window_of(timeline)[1] for timeline in timelines) - options.since_end_s
    clipped = tuple(clip(timeline, since, options.until) for timeline in timelines)
    whole = [window_of(timeline) for timeline in timelines]
    seen = [window for window in whole if window[1] > 0]
    if seen and not any(window_of(timeline)[1] > 0 for timeline in clipped):
        begin, end = (
            datetime.fromtimestamp(edge, UTC).isoformat(timespec="seconds")
            for edge in (min(w[0] for w in seen), max(w[1] for w in seen))
        )
        raise UsageError(
            f"--since and --until leave nothing to judge: the data reach from {begin} to {end}"
        )
    return clipped


def _record(
    evidence: Evidence,
    clocks: tuple[ClockNote, ...],
    engines: tuple[JudgedEngine, ...],
    options: Options,
) -> Analysis:
    every = [item for engine in engines for item in engine.judged]
    falls = [case for engine in engines for case in engine.cases if case.episode is not None]
    missing = list(dict.fromkeys(name for engine in engines for name in engine.missing))
    if not engines:
        missing.append("samples (the metrics endpoint only describes its metrics)")
    unseen = list(dict.fromkeys(name for engine in engines for name in engine.unseen))
    slow = slowest_case(engines)
    reserves = (reserve(engine.timeline) for engine in engines)
    hidden = next((message for message in reserves if message is not None), None)
    verdict, weighed = weigh(every, falls, missing, slow, unseen, reserve=hidden)
    places = Places(evidence, confidential=options.confidential)
    places.prepare(views.places_shown(engines, evidence))
    windows = [window_of(engine.timeline) for engine in engines]
    windows = [window for window in windows if window[1] > 0]
    ceilings = tuple(_ceiling(engine, verdict, options) for engine in engines)
    by_engine = {ceiling.engine: ceiling for ceiling in ceilings}
    shown = [item for item in weighed if item.role != "rejected"]
    lead = next((item.judged for item in weighed if item.role == "primary"), None)
    lead = lead or (weighed[0].judged if weighed and verdict.onset else None)
    return Analysis(
        tool_version=forensics.__version__,
        window=(min(w[0] for w in windows), max(w[1] for w in windows)) if windows else None,
        verdict=verdict,
        findings=tuple(
            views.finding_view(item.judged, places, by_engine.get(item.judged.case.timeline.engine))
            for item in shown
        ),
        decompositions=tuple(
            view
            for engine in engines
            for number, case in enumerate(engine.cases)
            if (view := views.decomposition_view(case, number)) is not None
        ),
        impact=_impact(lead, slow if _is_about(verdict, slow) else None, engines, options),
        engines=tuple(views.engine_view(engine.timeline.diary) for engine in engines),
        ceilings=ceilings,
        sweep=of_engines([engine.timeline for engine in engines], Targets(options.slo_ttft_s)),
        clocks=tuple(views.clock_view(note, evidence) for note in clocks),
        tracks=tuple(views.tracks_view(engine, places) for engine in engines),
        files=views.file_views(evidence, places),
        not_evaluated=tuple(
            NotEvaluated(rule_id, engine.timeline.engine, names)
            for engine in engines
            for rule_id, names in engine.not_evaluated
        ),
        weighed=tuple(_weighed(item) for item in weighed),
    )


def _is_about(verdict: Verdict, slow: Case | None) -> bool:
    if slow is None or slow.episode is None or verdict.cause != INSUFFICIENT:
        return False
    return verdict.onset == slow.episode.onset


def _impact(
    lead: Judged | None,
    slow: Case | None,
    engines: tuple[JudgedEngine, ...],
    options: Options,
) -> Impact:
    """Measure whom the incident hurt; without one, how long a target was missed all the same."""
    if slow is not None:
        return impact_of(slow, None, options)
    if lead is not None:
        return impact_of(lead.case, lead.opinion, options)
    missed = [outside_target(engine.timeline, options) for engine in engines]
    return Impact(slo_minutes=max((m for m in missed if m is not None), default=None))


def _beyond(left_out: int) -> tuple[NotEvaluated, ...]:
    """Say which engines no rule was asked about."""
    if not left_out:
        return ()
    why = f"at most {MOST_ENGINES} engines are analysed at once; give fewer, or a selector"
    return (NotEvaluated("all", f"{left_out} more engines", (why,)),)


def _weighed(item: Weighing) -> Weighed:
    opinion = item.judged.opinion
    return Weighed(
        rule_id=opinion.rule_id,
        cause=opinion.cause,
        engine=item.judged.case.timeline.engine,
        weight=round(opinion.weight, 3),
        role=item.role,
        reason=opinion.summary,
    )


def _ceiling(engine: JudgedEngine, verdict: Verdict, options: Options) -> Ceiling:
    return recommend(engine.timeline, engine.timeline.diary.epochs[-1], verdict, options)


def _described(evidence: Evidence) -> bool:
    """Tell whether a metrics endpoint was read that describes its metrics and holds no sample."""
    return any(
        one.format == "prometheus-text" and one.matched == 0 and one.note is not None
        for one in evidence.coverage
    )


def _nothing_of_vllm(evidence: Evidence) -> str:
    names = ", ".join(source.path for source in evidence.sources[:3])
    notes = [one.note for one in evidence.coverage if one.note is not None]
    if notes:
        return f"nothing in {names} speaks of a vLLM engine: {'; '.join(notes[:3])}"
    return (
        f"nothing in {names} speaks of a vLLM engine: no stats lines, start-up lines or vllm: "
        "metrics were found; give the server's log or a dump of its metrics"
    )
