"""Analysis → Prometheus alert rules that would have told of this incident, and are silent else.

Levels come from `tuning`, queries from `promql`; a rule that has no level or whose metrics the
release does not expose is left out. `causes` says which verdicts a rule stands for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from forensics.analysis import Analysis
from forensics.reports.promql import Queries, duration, queries
from forensics.reports.tuning import Tuning, tuning
from forensics.reports.wording import word

# A seat or pool counts as taken a little below its last place: gauges are read between steps.
_FULL_SHARE = 0.97
# Requests that got a first token and never ended, against those that ended (observed.md 11).
_ABANDONED = 1.25


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One alert rule.

    Attributes:
        name: CamelCase, begins with Vllm.
        expr: PromQL, true while it should fire.
        hold_s: seconds for which it must be true.
        severity: warning or critical.
        causes: names of the verdicts it stands for.
        summary / detail: for people.
    """

    name: str
    expr: str
    hold_s: float
    severity: str
    causes: tuple[str, ...]
    summary: str
    detail: str


def rules(analysis: Analysis, lang: str = "en") -> Sequence[AlertRule]:
    """Make the rules for the deployment an analysis is about.

    Raises:
        InputError: the analysis has no timeline.
    """
    levels = tuning(analysis)
    ask = queries(levels.release, levels.generation, levels.window_s)
    made = [
        _preemption(levels, ask, lang),
        _hit_rate(levels, ask, lang),
        _residence(levels, ask, lang),
        _pool_full(levels, ask, lang),
        _seats(levels, ask, lang),
        _plateau(levels, ask, lang),
        _slow(levels, ask, lang),
        _stall(levels, ask, lang),
        _abandoned(levels, ask, lang),
        _no_lookups(levels, ask, lang),
    ]
    return [rule for rule in made if rule is not None]


def render(analysis: Analysis, lang: str = "en") -> str:
    """Write a rule file for Prometheus."""
    levels = tuning(analysis)
    listed = [
        {
            "alert": rule.name,
            "expr": rule.expr,
            "for": duration(rule.hold_s),
            "labels": {"severity": rule.severity, "causes": ",".join(rule.causes)},
            "annotations": {"summary": rule.summary, "description": rule.detail},
        }
        for rule in rules(analysis, lang)
    ]
    group = {"name": "vllm-forensics", "interval": duration(levels.step_s), "rules": listed}
    head = word("alerts.header", lang, version=str(levels.release))
    body = yaml.safe_dump({"groups": [group]}, sort_keys=False, allow_unicode=True, width=1000)
    return f"# {head}\n{body}"


def _preemption(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if ask.preemptions is None:
        return None
    limit = "B_safe" if levels.limit is None else str(levels.limit)
    return AlertRule(
        "VllmPreemption",
        f"{ask.preemptions} > 0",
        levels.hold_s,
        "critical",
        ("preemption-cliff", "preemption-thrash", "long-context-hog"),
        word("alerts.preemption", lang),
        word("alerts.preemption_detail", lang, limit=limit),
    )


def _hit_rate(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if levels.hit_rate is None or ask.hit_rate is None:
        return None
    level = levels.hit_rate
    return AlertRule(
        "VllmHitRateLow",
        f"({ask.hit_rate}) < {level.line:g}",
        # Twice as long as the others: a cold cache after a restart fills within seconds.
        2 * levels.hold_s,
        "warning",
        ("preemption-cliff", "eviction-pressure", "prefix-diversity-loss", "stuck-cache"),
        word("alerts.hit_rate", lang),
        word("alerts.hit_rate_detail", lang, level=level.line, before=level.usual),
    )


def _residence(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if levels.residence_s is None or levels.pool_tokens is None:
        return None
    asked = ask.residence(levels.pool_tokens)
    if asked is None:
        return None
    return AlertRule(
        "VllmBlocksRecycledEarly",
        f"({asked}) < {levels.residence_s.line:g}",
        levels.hold_s,
        "warning",
        ("preemption-cliff", "eviction-pressure"),
        word("alerts.residence", lang),
        word("alerts.residence_detail", lang, gap=levels.residence_s.line),
    )


def _pool_full(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if ask.usage is None:
        return None
    full = f"avg_over_time({ask.usage}[{ask.window}]) > {_FULL_SHARE:g}"
    queued = f"avg_over_time({ask.waiting}[{ask.window}]) > {levels.waiting:g}"
    return AlertRule(
        "VllmPoolFull",
        f"{full} and {queued}",
        levels.hold_s,
        "warning",
        ("kv-capacity-queueing",),
        word("alerts.pool_full", lang),
        word("alerts.pool_full_detail", lang, limit=f"{levels.waiting:g}"),
    )


def _seats(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if levels.seats is None:
        return None
    taken = f"avg_over_time({ask.running}[{ask.window}]) >= {_FULL_SHARE * levels.seats:g}"
    queued = f"avg_over_time({ask.waiting}[{ask.window}]) > {levels.waiting:g}"
    return AlertRule(
        "VllmSeatsTaken",
        f"{taken} and {queued}",
        levels.hold_s,
        "warning",
        ("seat-limit",),
        word("alerts.seats", lang, limit=str(levels.seats)),
        word("alerts.queue_detail", lang, limit=f"{levels.waiting:g}"),
    )


def _plateau(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if levels.plateau_tok_s is None or levels.limit is None or ask.generation_tokens is None:
        return None
    many = f"avg_over_time({ask.running}[{ask.window}]) > {levels.limit}"
    flat = f"{ask.generation_tokens} < {1.1 * levels.plateau_tok_s:.4g}"
    return AlertRule(
        "VllmThroughputFlat",
        f"{many} and {flat}",
        levels.hold_s,
        "warning",
        ("compute-plateau",),
        word("alerts.plateau", lang),
        word("alerts.plateau_detail", lang, limit=str(levels.limit)),
    )


def _slow(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if levels.ttft_s is None or ask.ttft_mean is None:
        return None
    level = levels.ttft_s
    return AlertRule(
        "VllmFirstTokenSlow",
        f"({ask.ttft_mean}) > {level.line:g}",
        levels.hold_s,
        "warning",
        ("seat-limit", "kv-capacity-queueing", "compute-plateau", "prefill-bound"),
        word("alerts.slow", lang),
        word("alerts.slow_detail", lang, level=level.line, before=level.usual),
    )


def _stall(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if ask.generation_tokens is None or ask.prompt is None:
        return None
    busy = f"min_over_time({ask.running}[{ask.window}]) > 0"
    still = f"{ask.generation_tokens} == 0 and {ask.prompt} == 0"
    return AlertRule(
        "VllmStall",
        f"{busy} and {still}",
        levels.hold_s,
        "critical",
        ("engine-stall",),
        word("alerts.stall", lang),
        word("alerts.stall_detail", lang),
    )


def _abandoned(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if ask.ttft_count is None or ask.e2e_count is None:
        return None
    # In a growing queue the requests in flight also have a first token and no end yet; they are
    # taken off, as they cannot be more than those running.
    begun = f"{ask.ttft_count} - delta({ask.running}[{ask.window}]) / {levels.window_s:g}"
    return AlertRule(
        "VllmClientsGiveUp",
        f"({begun}) > {_ABANDONED:g} * {ask.e2e_count} > 0",
        2 * levels.hold_s,
        "warning",
        ("client-aborts",),
        word("alerts.abandoned", lang),
        word("alerts.abandoned_detail", lang),
    )


def _no_lookups(levels: Tuning, ask: Queries, lang: str) -> AlertRule | None:
    if ask.lookups is None or ask.prompt is None:
        return None
    return AlertRule(
        "VllmPrefixCacheOff",
        f"{ask.prompt} > 0 and {ask.lookups} == 0",
        2 * levels.hold_s,
        "info",
        ("caching-disabled",),
        word("alerts.caching_off", lang),
        word("alerts.caching_off_detail", lang),
    )
