"""What was found → the plain records that reports show."""

import numpy as np
import polars as pl

from forensics.analysis import (
    Advice,
    ClockView,
    Decomposition,
    EngineTracks,
    EngineView,
    EpochView,
    Evidenced,
    FileView,
    Finding,
    GpuView,
    MarkView,
    PoolView,
    Share,
    Track,
)
from forensics.ceiling import Ceiling
from forensics.diary import EngineDiary, Epoch
from forensics.evidence import Evidence, Place
from forensics.pipeline.judge import JudgedEngine
from forensics.pipeline.places import Places
from forensics.timeline import SIGNALS, ClockNote, EngineTimeline
from forensics.verdict import Judged
from rules import Case
from rules.interface import Exhibit

_SHOWN_SIGNALS = (
    "hit_rate", "logged_hit_rate", "counter_hit_rate", "preemptions", "preemption_lower_bound",
    "kv_usage", "running", "waiting", "ttft_s", "itl_s", "generation_tps", "prompt_tps",
    "requests_per_s", "residence_s", "queries_per_prompt_token", "aborted", "rejected",
)  # fmt: skip
_SUMMED = frozenset({"preemptions", "preemption_lower_bound", "aborted", "rejected"})
_MOST_POINTS = 600
_SETTINGS = (
    "max_num_seqs", "max_model_len", "max_num_batched_tokens", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization", "kv_cache_dtype",
    "dtype", "prefix_caching",
)  # fmt: skip
_MOST_DAMAGE = 20


def places_shown(engines: tuple[JudgedEngine, ...], evidence: Evidence) -> list[Place | None]:
    """Collect all places that the analysis will show, so that lines are looked up in one pass."""
    found: list[Place | None] = []
    for engine in engines:
        for item in engine.judged:
            found += [e.place for e in (*item.opinion.for_, *item.opinion.against)]
        found += [mark.place for mark in engine.timeline.marks]
    found += [Place(d.source, d.offset) for d in evidence.damages[: _MOST_DAMAGE * 5]]
    return found


def finding_view(item: Judged, places: Places, ceiling: Ceiling | None) -> Finding:
    """Turn an opinion into a finding; its commands get the numbers of the engine's ceiling."""
    opinion = item.opinion
    return Finding(
        rule_id=opinion.rule_id,
        cause=opinion.cause,
        severity=opinion.severity.value,
        confidence=round(opinion.weight, 3),
        engine=item.case.timeline.engine,
        onset=opinion.onset,
        end=opinion.end,
        summary=opinion.summary,
        share=None if opinion.share is None else round(opinion.share, 3),
        exhibits=tuple(_evidenced(e, places) for e in opinion.for_),
        against=tuple(_evidenced(e, places) for e in opinion.against),
        actions=tuple(
            Advice(a.text, a.effect, _filled(a.command, ceiling))
            for a in sorted(opinion.actions, key=lambda action: action.rank)
        ),
        would_decide=opinion.would_decide,
    )


def _filled(command: str | None, ceiling: Ceiling | None) -> str | None:
    """Put the recommended numbers into a command; a number that is not known stays a word."""
    if command is None or ceiling is None:
        return command
    for word, limit in (("<ceiling>", ceiling.max_num_seqs), ("<limit>", ceiling.admission_limit)):
        if limit is not None:
            command = command.replace(word, str(int(limit.value)))
    return command


def decomposition_view(case: Case, number: int) -> Decomposition | None:
    """Turn the attribution of a fall into a record."""
    if case.episode is None or case.attribution is None:
        return None
    return Decomposition(
        engine=case.timeline.engine,
        episode=number,
        onset=case.episode.onset,
        before=case.attribution.before,
        after=case.attribution.after,
        parts=tuple(Share(p.part, p.value, p.low, p.high) for p in case.attribution.parts),
        decided=case.attribution.decided,
        basis=case.attribution.basis,
    )


def engine_view(diary: EngineDiary) -> EngineView:
    """Turn a diary into a record."""
    return EngineView(diary.engine, diary.instance, tuple(_epoch(e) for e in diary.epochs))


def _epoch(epoch: Epoch) -> EpochView:
    config = {name: getattr(epoch, name) for name in _SETTINGS}
    for name in ("enable_chunked_prefill", "scheduling_policy", "num_gpu_blocks_override",
                 "kv_cache_metrics", "speculative_config"):  # fmt: skip
        stated = epoch.flags.get(name)
        if stated is not None:
            config[name] = stated.value
    return EpochView(
        start=epoch.start,
        end=epoch.end,
        vllm_version=str(epoch.version) if epoch.version else None,
        generation=epoch.generation,
        model=epoch.model.value if epoch.model else None,
        gpu=GpuView(epoch.gpu.name, epoch.gpu.candidates, epoch.gpu.memory_bytes, epoch.gpu.source),
        config=config,
        kv_pool=PoolView(
            epoch.pool.tokens, epoch.pool.blocks, epoch.pool.block_size, epoch.pool.source
        ),
    )


def clock_view(note: ClockNote, evidence: Evidence) -> ClockView:
    """Turn a clock note into a record."""
    return ClockView(
        source=evidence.sources[note.source].path,
        offset_s=note.offset_s,
        time_zone=note.time_zone,
        year=note.year,
        quality=note.quality,
        how=note.how,
    )


def tracks_view(engine: JudgedEngine, places: Places) -> EngineTracks:
    """Thin one engine's timeline to what the charts need."""
    timeline = engine.timeline
    signals: dict[str, Track] = {}
    for name in _SHOWN_SIGNALS:
        track = _track(timeline, name)
        if track is not None:
            signals[name] = track
    episodes = [case.episode for case in engine.cases if case.episode is not None]
    if engine.slow is not None:
        episodes.append(engine.slow)
    return EngineTracks(
        engine=timeline.engine,
        step_s=timeline.step_s,
        signals=signals,
        marks=tuple(
            MarkView(mark.time, mark.kind, mark.text, places.where(mark.place))
            for mark in timeline.marks
        ),
        episodes=tuple((episode.onset[0], episode.end, episode.signal) for episode in episodes),
    )


def _track(timeline: EngineTimeline, name: str) -> Track | None:
    origin = timeline.origins.get(name)
    frame = timeline.grid
    if origin is None or name not in SIGNALS or not timeline.has(name):
        return None
    fold = max(1, -(-frame.height // _MOST_POINTS))
    thin = frame.select("time", name)
    if fold > 1:
        how = pl.col(name).sum() if name in _SUMMED else pl.col(name).mean()
        thin = (
            thin.with_row_index("row")
            .group_by(pl.col("row") // fold, maintain_order=True)
            .agg(pl.col("time").last(), how.alias(name))
        )
    values = thin[name].to_numpy()
    return Track(
        times=tuple(round(float(time), 3) for time in thin["time"]),
        values=tuple(None if np.isnan(v) else round(float(v), 6) for v in values),
        clock=origin.clock,
    )


def file_views(evidence: Evidence, places: Places) -> tuple[FileView, ...]:
    """Turn coverage into records, in the order the files were read."""
    damage: dict[int, list[tuple[int, str]]] = {}
    for item in evidence.damages:
        listed = damage.setdefault(item.source, [])
        if len(listed) < _MOST_DAMAGE:
            listed.append((places.line_of(item.source, item.offset), item.reason))
    return tuple(
        FileView(
            path=evidence.sources[cover.source].path,
            format=cover.format,
            bytes=cover.bytes,
            lines=cover.lines,
            matched=cover.matched,
            ignored=cover.ignored,
            unknown=cover.unknown,
            damaged=cover.damaged,
            kind_bytes=cover.kind_bytes,
            samples=cover.samples,
            unknown_shapes=cover.unknown_shapes,
            damage=tuple(damage.get(cover.source, ())),
            # The notes of refusals begin with the path, which stands beside them here.
            note=cover.note and cover.note.removeprefix(f"{evidence.sources[cover.source].path}: "),
        )
        for cover in evidence.coverage
    )


def _evidenced(exhibit: Exhibit, places: Places) -> Evidenced:
    return Evidenced(
        signal=exhibit.signal,
        before=exhibit.before,
        after=exhibit.after,
        unit=exhibit.unit,
        source=places.where(exhibit.place),
        note=exhibit.note,
    )
