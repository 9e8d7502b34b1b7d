"""Limits and coverage in the terminal report: sections as lists of lines; see `text`."""

from collections.abc import Iterable

from forensics.analysis import Analysis, FileView
from forensics.catalog.messages import say_number
from forensics.ceiling.records import Bound, Ceiling, Sweep
from forensics.reports import selection
from forensics.reports.layout import cut, pad, width
from forensics.reports.plain import plain, sentence
from forensics.reports.text_page import Page, table
from forensics.reports.wording import figure, limits, named, size

_SHAPES = 3
_FILES = 12


def limit_only(analysis: Analysis, page: Page) -> list[str]:
    """Say the recommended limit of each engine in one line."""
    return [
        f"{page.engine(item.engine)} max_num_seqs "
        f"{limits(item.max_num_seqs.value, item.max_num_seqs.low, item.max_num_seqs.high)}".strip()
        for item in analysis.ceilings
        if item.max_num_seqs is not None
    ]


def impact(analysis: Analysis, page: Page) -> list[str]:
    """Say who was hurt, and how much."""
    seen = analysis.impact
    rows: list[tuple[str, str]] = []
    if seen.requests is not None:
        rows.append((page.say("label.requests"), say_number(seen.requests)))
    for key, pair, unit in (
        ("ttft", seen.ttft_s, "s"),
        ("e2e", seen.e2e_s, "s"),
        ("throughput", seen.throughput_tok_s, ""),
    ):
        if pair is not None:
            rows.append((page.say(f"label.{key}"), _pair(pair.before, pair.after, unit, page)))
    for name, pair in seen.latency_parts_s.items():
        label = f"· {named('part', name, page.lang)}"
        rows.append((label, _pair(pair.before, pair.after, "s", page)))
    if seen.grew is not None:
        rows.append((page.say("label.grew_most"), named("part", seen.grew, page.lang)))
    if seen.slo_minutes is not None:
        rows.append((page.say("label.slo_minutes"), say_number(seen.slo_minutes)))
    if not rows:
        return []
    space = max(width(label) for label, _ in rows)
    return [page.title("impact"), *(f"  {pad(label, space)}  {text}" for label, text in rows)]


def _pair(before: float | None, after: float | None, unit: str, page: Page) -> str:
    return f"{figure(before, unit, page.lang)} → {figure(after, unit, page.lang)}"


def ceiling(analysis: Analysis, page: Page) -> list[str]:
    """Show the recommended limits and every step of their arithmetic."""
    lines: list[str] = []
    for item in analysis.ceilings:
        lines += ceiling_lines(item, page)
    return lines


def ceiling_lines(item: Ceiling, page: Page) -> list[str]:
    """Show one engine's limits; `forensics ceiling` has nothing else to show."""
    about = [page.engine(item.engine), plain(item.gpu or ""), plain(item.model or "")]
    lines = [page.title("ceiling", " · ".join(part for part in about if part))]
    if item.max_num_seqs is not None:
        lines += page.field("max_num_seqs", _recommended(item, page))
    if item.admission_limit is not None:
        limit = item.admission_limit
        live = page.say("label.live", limits=limits(limit.value, limit.low, limit.high))
        lines += page.field(page.say("label.admission"), live)
    if item.refused is not None:
        said = page.say("label.refused", reason=sentence(item.refused, page.lang))
        lines += page.wrapped(said)
    for note in item.notes:
        lines += page.wrapped(sentence(note, page.lang))
    space = max([12, *(len(bound.name) for bound in item.bounds)])
    for bound in item.bounds:
        lines += _bound(bound, space, page)
    for row in item.gap_table:
        lines += page.wrapped(page.say("label.gap", gap=row.gap_s, clients=row.clients))
    return lines


def _recommended(item: Ceiling, page: Page) -> str:
    limit = item.max_num_seqs
    assert limit is not None
    facts = [page.paint.bold(limits(limit.value, limit.low, limit.high))]
    if item.current is not None:
        facts.append(page.say("label.current", value=item.current))
        if item.no_change:
            facts.append(page.say("label.no_change"))
    if item.binding_bound:
        facts.append(page.say("label.binding", bound=item.binding_bound))
    grade = named("level", item.confidence, page.lang)
    return ", ".join([*facts, page.say("label.ceiling_confidence", value=grade)])


def _bound(bound: Bound, space: int, page: Page) -> list[str]:
    name = pad(bound.name, space)
    if bound.value is None:
        reason = "–" if bound.refused is None else sentence(bound.refused, page.lang)
        return page.wrapped(page.say("label.refused", reason=reason), f"  {name} ")
    low = bound.value if bound.low is None else bound.low
    high = bound.value if bound.high is None else bound.high
    lines = page.wrapped(f"{limits(bound.value, low, high)} = {plain(bound.formula)}", f"  {name} ")
    for symbol, given in bound.inputs.items():
        value = figure(given.value, given.unit, page.lang)
        text = f"{plain(symbol)} = {value}  [{plain(given.source)}]"
        lines += page.wrapped(text, "      ", "          ")
    for step in bound.steps:
        lines += page.wrapped(plain(step), "      ", "          ")
    return lines


def sweep(analysis: Analysis, page: Page) -> list[str]:
    """Compare the settings of a sweep, one line each."""
    return [] if analysis.sweep is None else sweep_lines(analysis.sweep, page)


def sweep_lines(found: Sweep, page: Page) -> list[str]:
    """Compare the settings of one sweep."""
    columns = (("hit_rate", "ratio"), ("ttft_p50_s", "s"), ("ttft_p99_s", "s"))
    names = [plain(found.setting_name), "hit", "TTFT p50", "TTFT p99", "tok/s", "preempt"]
    rows = [
        [
            say_number(row.setting),
            *(figure(getattr(row, name), unit, page.lang) for name, unit in columns),
            figure(row.throughput_tok_s, "", page.lang),
            figure(row.preemptions, "", page.lang),
        ]
        for row in found.rows
    ]
    lines = [page.title("sweep"), *table([names, *rows])]
    for note in found.notes:
        lines += page.wrapped(sentence(note, page.lang))
    return lines


def coverage(analysis: Analysis, page: Page) -> list[str]:
    """Say what was read, and what of it was not understood."""
    files = analysis.files
    if not files:
        return []
    key = "label.read_one" if len(files) == 1 else "label.read_total"
    total = page.say(key, files=len(files), size=size(sum(view.bytes for view in files)))
    lines = [page.title("coverage", total)]
    if page.folder:
        lines += page.wrapped(f"{page.say('label.folder')} {plain(page.folder)}")
    shown = files if page.verbose else files[:_FILES]
    for view in shown:
        lines += page.wrapped(f"{plain(view.path)}: {_understood(view, page)}", "  ", "    ")
        lines += _not_understood(view, page)
    if len(shown) < len(files):
        lines.append(f"  … +{len(files) - len(shown)} (--verbose)")
    return lines


def _understood(view: FileView, page: Page) -> str:
    facts = [view.format]
    if view.lines:
        noun = page.say("label.line" if view.lines == 1 else "label.lines")
        facts.append(f"{view.lines:,} {noun.lower()}")
    for key, count in (
        ("matched", view.matched),
        ("ignored", view.ignored),
        ("unknown", view.unknown),
        ("damaged", view.damaged),
        ("sample" if view.samples == 1 else "samples", view.samples),
    ):
        held: int | None = getattr(view.kind_bytes, key, None) if page.verbose else None
        if count:
            room = "" if held is None else f" ({size(held)})"
            facts.append(f"{count:,} {page.say(f'label.{key}')}{room}")
    return ", ".join(facts) + (f"; {plain(view.note)}" if view.note else "")


def _not_understood(view: FileView, page: Page) -> Iterable[str]:
    keep = None if page.verbose else _SHAPES
    lines = [
        cut(f"    {count:,} × {plain(shape)}", page.width)
        for shape, count in view.unknown_shapes[:keep]
    ]
    for line, reason in view.damage[:keep]:
        key = "label.damage_at" if line else "label.damage_in"
        lines += page.wrapped(page.say(key, line=line, reason=plain(reason)), "    ")
    return lines


def clocks(analysis: Analysis, page: Page) -> list[str]:
    """Say how clocks were put on UTC, where that was not plain."""
    told = [item for item in analysis.clocks if page.verbose or item.quality != "exact"]
    lines: list[str] = []
    for item in told:
        zone = "" if item.time_zone is None else f"{plain(item.time_zone)}, "
        quality = named("quality", item.quality, page.lang)
        lines += page.wrapped(
            f"{plain(item.source)}: {zone}{quality}: {plain(item.how)}", "  ", "    "
        )
    return [page.title("clocks"), *lines] if lines else []


def not_evaluated(analysis: Analysis, page: Page) -> list[str]:
    """Say which rules could not be asked, and what they would have needed."""
    grouped: dict[tuple[str, ...], dict[str, None]] = {}
    for item in analysis.not_evaluated:
        grouped.setdefault(item.missing, {})[item.rule_id] = None
    lines: list[str] = []
    for missing, rules in grouped.items():
        needs = page.say("label.needs", missing=", ".join(map(plain, missing)))
        lines += page.wrapped(f"{', '.join(rules)}: {needs}", "  ", "    ")
    return [page.title("not_evaluated"), *lines] if lines else []


def footer(analysis: Analysis, page: Page) -> list[str]:
    """Say how to go on."""
    lines: list[str] = []
    main = selection.main_finding(analysis)
    if main is not None:
        lines += page.wrapped(page.say("label.explain_hint", rule=main.rule_id), "")
    return [page.paint.dim(line) for line in lines]
