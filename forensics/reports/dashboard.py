"""Analysis → a Grafana dashboard that shows the signals of this verdict, in that release's names.

Schema 39 (Grafana 10.4 and later). The lines drawn are the same levels as in the alert rules.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.analysis import Analysis
from forensics.reports.promql import duration, queries
from forensics.reports.tuning import tuning
from forensics.reports.wording import named

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS, _WIDE, _HIGH = 24, 12, 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its queries with legends, unit and an optional line."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str
    line: float | None = None
    top: float | None = None


def render(analysis: Analysis, lang: str = "en") -> str:
    """Write the dashboard as JSON to import.

    Raises:
        InputError: the analysis has no timeline.
    """
    shown = [_panel(at, panel) for at, panel in enumerate(panels(analysis, lang))]
    document = {
        "title": "vLLM prefix cache and KV pool",
        "uid": "vllm-forensics",
        "tags": ["vllm"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "timezone": "utc",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "type": "datasource",
                    "query": "prometheus",
                    "label": "Prometheus",
                }
            ]
        },
        "panels": shown,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def panels(analysis: Analysis, lang: str) -> Sequence[Panel]:
    """Choose the panels; one whose metrics the release does not expose is left out."""
    levels = tuning(analysis)
    ask = queries(levels.release, levels.generation, max(60.0, levels.window_s))
    legend = "{{instance}} {{engine}}"

    def name(signal: str) -> str:
        return named("signal", signal, lang)

    made = []
    if ask.hit_rate:
        line = None if levels.hit_rate is None else levels.hit_rate.line
        made.append(Panel(name("hit_rate"), [(ask.hit_rate, legend)], "percentunit", line, 1.0))
    if ask.preemptions:
        made.append(Panel(name("preemptions"), [(ask.preemptions, legend)], "short"))
    if ask.usage:
        made.append(Panel(name("kv_usage"), [(ask.usage, legend)], "percentunit", None, 1.0))
    both = [
        (ask.running, f"{name('running')} {legend}"),
        (ask.waiting, f"{name('waiting')} {legend}"),
    ]
    limit = None if levels.limit is None else float(levels.limit)
    made.append(Panel(f"{name('running')}, {name('waiting')}", both, "short", limit))
    if ask.ttft_buckets:
        line = None if levels.ttft_s is None else levels.ttft_s.line
        asked = [
            (f"histogram_quantile({q}, {ask.ttft_buckets})", f"p{q * 100:g} {legend}")
            for q in (0.5, 0.99)
        ]
        made.append(Panel(name("ttft_s"), asked, "s", line))
    if ask.generation_tokens:
        made.append(Panel(name("generation_tps"), [(ask.generation_tokens, legend)], "short"))
    residence = None if levels.pool_tokens is None else ask.residence(levels.pool_tokens)
    if residence:
        line = None if levels.residence_s is None else levels.residence_s.line
        title = f"{name('residence_s')} ({duration(max(60.0, levels.window_s))})"
        made.append(Panel(title, [(residence, legend)], "s", line))
    return made


def _panel(at: int, panel: Panel) -> dict[str, object]:
    steps: list[dict[str, object]] = [{"color": "green", "value": None}]
    if panel.line is not None:
        steps.append({"color": "red", "value": panel.line})
    defaults: dict[str, object] = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
        "custom": {"thresholdsStyle": {"mode": "line" if panel.line is not None else "off"}},
    }
    if panel.top is not None:
        defaults["max"] = panel.top
    across = _COLUMNS // _WIDE
    return {
        "id": at + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {
            "x": at % across * _WIDE,
            "y": at // across * _HIGH,
            "w": _WIDE,
            "h": _HIGH,
        },
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + n),
                "expr": expr,
                "legendFormat": legend,
                "datasource": _SOURCE,
            }
            for n, (expr, legend) in enumerate(panel.queries)
        ],
    }
