"""What of an analysis a reader sees first: the same choice in every report."""

from collections.abc import Sequence

from forensics.analysis import Advice, Analysis, EngineTracks, Finding

# Drawn in this order when present; those the evidence names come first (see `deciding_signals`).
MAIN_SIGNALS = (
    "hit_rate",
    "preemptions",
    "preemption_lower_bound",
    "kv_usage",
    "running",
    "waiting",
    "ttft_s",
    "generation_tps",
)
RATIOS = frozenset({"hit_rate", "potential", "logged_hit_rate", "kv_usage"})
_MOST_SIGNALS = 8
# What is less likely than not is left to the list of all opinions.
_FURTHER = 0.5


def main_finding(analysis: Analysis) -> Finding | None:
    """Give the finding that is the verdict; None for `healthy` and `insufficient-evidence`."""
    verdict = analysis.verdict
    same = [item for item in analysis.findings if item.cause == verdict.cause]
    here = [item for item in same if verdict.engine in (None, item.engine)]
    return next(iter(here or same), None)


def shown_findings(analysis: Analysis) -> Sequence[Finding]:
    """Give the findings that are part of the answer, the verdict's own first."""
    main = main_finding(analysis)
    parts = {item.cause for item in analysis.verdict.contributing}
    others = [item for item in analysis.findings if item is not main and item.cause in parts]
    return ([main] if main else []) + others


def evidence_findings(analysis: Analysis) -> Sequence[Finding]:
    """Give the findings whose exhibits carry the answer: the verdict's, or the open candidates'."""
    main = main_finding(analysis)
    if main is not None:
        return [main]
    candidates = [cause for cause, _ in analysis.verdict.candidates]
    firsts = {
        cause: next((item for item in analysis.findings if item.cause == cause), None)
        for cause in candidates
    }
    return [item for item in firsts.values() if item is not None]


def further_findings(analysis: Analysis) -> Sequence[Finding]:
    """Give what else is wrong and is no part of the answer, the first of each cause."""
    told = {item.cause for item in (*shown_findings(analysis), *evidence_findings(analysis))}
    found: dict[str, Finding] = {}
    for item in analysis.findings:
        if item.cause not in told and item.severity != "info" and item.confidence >= _FURTHER:
            found.setdefault(item.cause, item)
    return list(found.values())


def advice(analysis: Analysis) -> Sequence[Advice]:
    """Give what to do, the main cause's first, each action once."""
    found: dict[tuple[str, str | None], Advice] = {}
    for finding in shown_findings(analysis):
        for action in finding.actions:
            found.setdefault((action.text.key, action.command), action)
    return list(found.values())


def main_tracks(analysis: Analysis) -> EngineTracks | None:
    """Give the timeline of the engine the verdict is about; the first engine's otherwise."""
    wanted = analysis.verdict.engine
    here = [track for track in analysis.tracks if track.engine == wanted]
    return next(iter(here or analysis.tracks), None)


def deciding_signals(analysis: Analysis, tracks: EngineTracks) -> Sequence[str]:
    """Name the signals to draw: the main ones, then those the evidence rests on."""
    main = main_finding(analysis)
    cited = [exhibit.signal for exhibit in main.exhibits] if main else []
    ordered = dict.fromkeys([*MAIN_SIGNALS, *cited])
    drawable = [
        name
        for name in ordered
        if name in tracks.signals
        and any(value is not None for value in tracks.signals[name].values)
    ]
    return drawable[:_MOST_SIGNALS]


def worst_severity(analysis: Analysis) -> str:
    """Give the highest severity among the findings that are part of the answer."""
    order = ("info", "warning", "critical")
    seen = [item.severity for item in shown_findings(analysis)]
    return max(seen, key=order.index, default="info")
