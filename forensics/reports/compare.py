"""Comparison of two analyses → text, Markdown or JSON."""

from collections.abc import Sequence

import orjson

from forensics.analysis import SCHEMA_VERSION, Analysis
from forensics.reports.comparison import Comparison, Figure, compare
from forensics.reports.document import listed
from forensics.reports.layout import Paint, pad, width, wrap
from forensics.reports.plain import markdown_text, plain, sentence
from forensics.reports.selection import RATIOS
from forensics.reports.wording import figure, interval, named, word


def render_text(
    before: Analysis, after: Analysis, *, lang: str = "en", columns: int = 100, colour: bool = False
) -> str:
    """Write the comparison for a terminal."""
    paint, found = Paint(colour), compare(before, after)
    lines = [paint.bold(word("heading.compare", lang).upper())]
    for key, side in (("before", before), ("after", after)):
        window = "–" if side.window is None else interval(side.window)
        said = f"{window} · {side.verdict.cause} · {sentence(side.verdict.summary, lang)}"
        lines += wrap(said, columns, f"  {pad(word(f'label.{key}', lang), 8)}")
    lines += ["", *wrap(paint.bold(outcome(found, lang)), columns)]
    changed = found.traffic_changed
    if changed:
        lines += wrap(_traffic(changed, lang), columns)
    lines += ["", paint.bold(word("heading.configuration", lang).upper())]
    lines += _settings(found, lang, columns)
    lines += ["", paint.bold(word("heading.figures", lang).upper())]
    lines += _aligned([_heads(lang), *(_row(item, lang) for item in found.figures)])
    lines += ["", *wrap(word("compare.meaning", lang), columns)]
    return "\n".join(lines) + "\n"


def render_markdown(before: Analysis, after: Analysis, *, lang: str = "en") -> str:
    """Write the comparison as Markdown."""
    found = compare(before, after)
    lines = [f"# {word('heading.compare', lang)}", "", f"**{outcome(found, lang)}**", ""]
    if found.traffic_changed:
        lines += [_traffic(found.traffic_changed, lang), ""]
    lines += [f"## {word('heading.configuration', lang)}", ""]
    if found.settings:
        heads = [word(f"label.{key}", lang) for key in ("setting", "before", "after")]
        lines += [_cells(heads), "|---|---|---|"]
        lines += [_cells([item.name, item.before, item.after]) for item in found.settings]
    else:
        lines.append(word("compare.no_settings", lang))
    lines += ["", f"## {word('heading.figures', lang)}", "", _cells(_heads(lang))]
    lines.append("|---|--:|--:|--:|--:|---|")
    lines += [_cells(_row(item, lang)) for item in found.figures]
    lines += ["", word("compare.meaning", lang)]
    return "\n".join(lines) + "\n"


def render_json(before: Analysis, after: Analysis) -> str:
    """Write the comparison as one JSON document, byte-identical for identical input."""
    found = compare(before, after)
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "forensics", "version": after.tool_version},
        "outcome": found.outcome,
        "before": {"cause": found.before_cause, "confidence": before.verdict.confidence},
        "after": {"cause": found.after_cause, "confidence": after.verdict.confidence},
        "settings": listed(found.settings),
        "figures": listed(found.figures),
        "traffic_changed": list(found.traffic_changed),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def outcome(found: Comparison, lang: str) -> str:
    """Say in one sentence whether the incident is gone."""
    causes = {"worked": found.before_cause, "remains": found.before_cause}
    return word(
        f"compare.{found.outcome}",
        lang,
        cause=causes.get(found.outcome, found.after_cause),
        before=found.before_cause,
        after=found.after_cause,
    )


def _traffic(changed: Sequence[str], lang: str) -> str:
    names = ", ".join(named("signal", signal, lang) for signal in changed)
    return word("compare.traffic_changed", lang, signals=names)


def _settings(found: Comparison, lang: str, columns: int) -> list[str]:
    if not found.settings:
        return [f"  {word('compare.no_settings', lang)}"]
    space = max(width(item.name) for item in found.settings)
    lines: list[str] = []
    for item in found.settings:
        shown = f"{plain(item.before)} → {plain(item.after)}"
        lines += wrap(shown, columns, f"  {pad(plain(item.name), space)}  ")
    return lines


def _heads(lang: str) -> list[str]:
    keys = ("label.signal", "label.before", "label.after", "compare.change", "compare.noise")
    return [word(key, lang) for key in (*keys, "compare.judgement")]


def _row(item: Figure, lang: str) -> list[str]:
    unit = "ratio" if item.signal in RATIOS else ("s" if item.signal in _TIMES else "")
    change = None
    if item.before is not None and item.after is not None:
        change = item.after - item.before
    sign = "+" if change is not None and change > 0 else ""
    noise = item.noise if item.noise is not None and item.noise != float("inf") else None
    return [
        named("signal", item.signal, lang),
        figure(item.before, unit, lang),
        figure(item.after, unit, lang),
        sign + figure(change, unit, lang),
        "–" if noise is None else f"± {figure(noise, unit, lang)}",
        word(f"judgement.{item.judgement}", lang),
    ]


_TIMES = frozenset({"ttft_s", "itl_s", "e2e_s"})


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    spaces = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    last = len(spaces) - 1
    return [
        "  "
        + "  ".join(
            pad(cell, spaces[at], right=0 < at < last) for at, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def _cells(row: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in row) + " |"
