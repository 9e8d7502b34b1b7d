"""The leading case → who was hurt and how much: latency in its parts, throughput, requests."""

import numpy as np

from forensics.analysis import BeforeAfter, Impact
from forensics.attribution import Figures, figures, grown_part
from forensics.config import Options
from forensics.episodes import Span
from forensics.timeline import EngineTimeline
from rules import Case, Opinion

# Where the incident has no episode of its own, it is compared with as much time before its onset.
_LATEST_BASELINE_S = 1800.0
# Between two tokens nothing but a preemption (or a stall) takes a second.
_PAUSE_S = 1.0


def impact_of(case: Case, opinion: Opinion | None, options: Options) -> Impact:
    """Measure the impact of an incident on its engine.

    Queue time ends at the first scheduling; what a preempted request waits again lies in its decode
    time (observed.md 10), so `preempted` is a part of `decode`: its pauses of a second and more.

    Args:
        case: where it happened.
        opinion: the leading one, for an incident without an episode of its own; None with one.
        options: hold the latency targets.
    """
    timeline = case.timeline
    before, after = case.before, case.after
    span = case.episode.after if case.episode is not None else None
    calm = case.episode.baseline if case.episode is not None else None
    if span is None and opinion is not None and opinion.onset is not None:
        end = opinion.end if opinion.end is not None else case.window[1]
        span = Span(opinion.onset[0], max(end, opinion.onset[1]))
        after = figures(timeline, span, case.epoch.pool.tokens)
        if opinion.onset[0] > case.window[0]:
            start = max(case.window[0] - 1.0, opinion.onset[0] - _LATEST_BASELINE_S)
            calm = Span(start, opinion.onset[0])
            before = figures(timeline, calm, case.epoch.pool.tokens)
    return Impact(
        requests=after.requests,
        ttft_s=_pair(before, after, "ttft_s"),
        e2e_s=_pair(before, after, "e2e_s"),
        throughput_tok_s=_pair(before, after, "generation_tps"),
        latency_parts_s={
            name: pair
            for name, pair in (
                ("queue", _pair(before, after, "queue_s")),
                ("prefill", _pair(before, after, "prefill_s")),
                ("decode", _pair(before, after, "decode_s")),
                (
                    "preempted",
                    _preempted(timeline, calm, span, (before, after)) if span else None,
                ),
            )
            if pair is not None
        },
        grew=grown_part(before, after),
        slo_minutes=outside_target(timeline, options, span) if span is not None else None,
    )


def _pair(before: Figures | None, after: Figures, name: str) -> BeforeAfter | None:
    old = getattr(before, name) if before is not None else None
    new = getattr(after, name)
    return None if old is None and new is None else BeforeAfter(old, new)


def _preempted(
    timeline: EngineTimeline,
    before: Span | None,
    after: Span,
    asked: tuple[Figures | None, Figures],
) -> BeforeAfter | None:
    """Give the least time per request that requests stood still in decode, seconds.

    The inter-token histogram holds each pause as one large sample: what lies in buckets from one
    second (and ten times the median) on is a pause, and its lower edge is the least it took.
    """
    histogram = timeline.histograms.get("itl_s")
    if histogram is None:
        return None

    def least(span: Span | None, window: Figures | None) -> float | None:
        if span is None or window is None or not window.requests:
            return None
        counts = np.diff(histogram.over(span.start, span.end), prepend=0.0)
        lower = np.concatenate(([0.0], histogram.edges[:-1]))
        total = float(counts.sum())
        if total <= 0:
            return None
        median = float(histogram.edges[int(np.searchsorted(np.cumsum(counts), total / 2))])
        long = lower >= max(_PAUSE_S, 10 * median)
        return float((counts[long] * lower[long]).sum()) / window.requests

    old, new = least(before, asked[0]), least(after, asked[1])
    return None if old is None and new is None else BeforeAfter(old, new)


def outside_target(
    timeline: EngineTimeline, options: Options, span: Span | None = None
) -> float | None:
    """Count the minutes in which a latency target was missed; None without a target.

    Args:
        timeline: the engine.
        options: hold the targets.
        span: where to look; everything when None.
    """
    targets = (("ttft_s", options.slo_ttft_s), ("itl_s", options.slo_itl_s))
    asked = [(name, limit) for name, limit in targets if limit is not None and timeline.has(name)]
    if not asked:
        return None
    grid = timeline.grid
    if span is not None:
        grid = grid.filter((grid["time"] > span.start) & (grid["time"] <= span.end))
    missed = [
        any(
            value is not None and value > limit
            for value, (_, limit) in zip(row, asked, strict=True)
        )
        for row in grid.select([name for name, _ in asked]).iter_rows()
    ]
    seconds = grid["elapsed_s"].fill_null(timeline.step_s).to_list()
    outside_s: float = sum(s for s, bad in zip(seconds, missed, strict=True) if bad)
    return outside_s / 60.0
