"""What the terminal report says of the verdict: sections as lists of lines; see `text`."""

from dataclasses import replace

from forensics.analysis import Analysis, Evidenced, Finding, Track
from forensics.catalog.messages import say_utc
from forensics.reports import selection
from forensics.reports.layout import cells, cut, pad, sparkline, width
from forensics.reports.plain import plain, sentence
from forensics.reports.text_page import FIGURE, LABEL, Page
from forensics.reports.wording import clock, figure, interval, named, pair, place

# More than this is no longer "now"; --verbose shows them all.
_MOST_ACTIONS = 4


def header(analysis: Analysis, page: Page) -> list[str]:
    """Say what was analysed."""
    facts = [f"forensics {analysis.tool_version}"]
    if analysis.window is not None:
        facts.append(interval(analysis.window))
    if len(analysis.engines) > 1:
        facts.append(page.say("label.engines", count=len(analysis.engines)))
    epochs = [epoch for engine in analysis.engines for epoch in engine.epochs]
    versions = dict.fromkeys(epoch.vllm_version for epoch in epochs if epoch.vllm_version)
    facts += [f"vLLM {plain(version)}" for version in versions]
    facts += [plain(model) for model in dict.fromkeys(epoch.model for epoch in epochs) if model]
    return [page.paint.dim(line) for line in page.wrapped(" · ".join(facts), "", "")]


def verdict(analysis: Analysis, page: Page) -> list[str]:
    """Say the verdict in one sentence, with when, where and what else is part of it."""
    held = analysis.verdict
    main = selection.main_finding(analysis)
    severity = selection.worst_severity(analysis)
    name = held.cause + (f" ({main.rule_id})" if main else "")
    confidence = page.say("label.confidence", value=held.confidence)
    grade = f"{named('severity', severity, page.lang)} · {confidence}" if main else confidence
    head = f"{page.title('verdict')}  {page.paint.severity(severity, name)}"
    room = page.width - width(f"{page.say('heading.verdict')}  {name}")
    fits = width(f" · {grade}") <= room
    lines = [f"{head} · {grade}"] if fits else [head, f"  {grade}"]
    lines += page.wrapped(sentence(held.summary, page.lang))
    if held.onset is not None:
        end = page.say("label.goes_on") if held.end is None else _ended(held.end, page)
        where = "" if held.engine is None else page.engine(held.engine) + " · "
        lines += page.field(page.say("label.onset"), f"{interval(held.onset)} · {where}{end}")
    for part in held.contributing if not held.candidates else ():
        share = "" if part.share is None else f", {page.say('label.share', value=part.share)}"
        lines += page.field(page.say("label.also"), part.cause + share)
    if held.candidates:
        weighed = ", ".join(f"{cause} {weight:.2f}" for cause, weight in held.candidates)
        lines += page.field(page.say("label.candidates"), weighed)
    if held.missing:
        lines += page.field(page.say("label.missing"), ", ".join(map(plain, held.missing)))
    return lines


def _ended(end: float, page: Page) -> str:
    return f"{page.say('label.ended')} {say_utc(end)}"


def actions(analysis: Analysis, page: Page) -> list[str]:
    """Say what to do now, the first thing first."""
    listed = selection.advice(analysis)
    if not listed:
        return []
    lines = [page.title("now")]
    shown = listed if page.verbose else listed[:_MOST_ACTIONS]
    for number, action in enumerate(shown, start=1):
        lines += page.wrapped(sentence(action.text, page.lang), f"  {number}. ")
        lines += page.wrapped(sentence(action.effect, page.lang), "     ")
        if action.command:
            # Never wrapped: a command is to be copied as it stands.
            lines.append(f"     {page.paint.bold(plain(action.command))}")
    if len(shown) < len(listed):
        lines.append(f"  … +{len(listed) - len(shown)} (--verbose)")
    return lines


def also_observed(analysis: Analysis, page: Page) -> list[str]:
    """Say what else is wrong, whether or not it has to do with the answer."""
    lines: list[str] = []
    for finding in selection.further_findings(analysis):
        lines += _finding(finding, page, with_exhibits=False)
    return [page.title("also_observed"), *lines] if lines else []


def first_action(analysis: Analysis, page: Page) -> list[str]:
    """Say the first thing to do only."""
    lines: list[str] = []
    for action in selection.advice(analysis)[:1]:
        lines += page.wrapped(sentence(action.text, page.lang), "→ ")
        if action.command:
            lines.append(f"  {plain(action.command)}")
    return lines


def signals(analysis: Analysis, page: Page) -> list[str]:
    """Draw the signals that decided, one line each, on one clock."""
    tracks = selection.main_tracks(analysis)
    names = selection.deciding_signals(analysis, tracks) if tracks else ()
    if tracks is None or not names:
        return []
    times = [time for name in names for time in tracks.signals[name].times]
    span = analysis.focus or (min(times), max(times))
    room = page.width - LABEL - 2 * FIGURE - 4
    where = f"{page.engine(tracks.engine)} · {interval(span)}".strip(" ·")
    lines = [page.title("signals", where)]
    low, high = page.say("label.lowest"), page.say("label.highest")
    lines.append(page.paint.dim(f"{pad(low, LABEL + FIGURE + 2, right=True)} {' ' * room} {high}"))
    onset = analysis.verdict.onset
    if onset is not None and span[0] <= onset[1] <= span[1]:
        at = min(room - 1, int((onset[1] - span[0]) / ((span[1] - span[0]) or 1.0) * room))
        lines.append(" " * (LABEL + FIGURE + 3 + at) + "▼")
    return lines + [_signal(name, tracks.signals[name], page, span, room) for name in names]


def _signal(name: str, track: Track, page: Page, span: tuple[float, float], room: int) -> str:
    seen = [value for value in track.values if value is not None]
    unit = "ratio" if name in selection.RATIOS else ("s" if name.endswith("_s") else "")
    unit = "" if name == "requests_per_s" else unit
    top = 1.0 if name in selection.RATIOS else max(seen)
    line = sparkline(
        cells(track.times, track.values, span, room), top=top, ascii_only=page.ascii_only
    )
    label = pad(cut(named("signal", name, page.lang), LABEL), LABEL)
    first = pad(figure(min(seen), unit, page.lang), FIGURE, right=True)
    last = figure(max(seen), unit, page.lang)
    return f"  {label}{first} {pad(line, room)} {last}".rstrip()


def evidence(analysis: Analysis, page: Page) -> list[str]:
    """List the exhibits that carry the answer, before and after, with where each was read."""
    lines: list[str] = []
    carrying = selection.evidence_findings(analysis)
    for finding in carrying:
        if not (finding.exhibits or finding.against):
            continue
        if len(carrying) > 1:
            lines.append(f"  {page.paint.bold(f'{finding.rule_id} {finding.cause}')}")
        for exhibit in finding.exhibits:
            lines += _exhibit(exhibit, page)
        if finding.against:
            lines.append(f"  {page.paint.bold(page.say('heading.against'))}")
            for exhibit in finding.against:
                lines += _exhibit(exhibit, page)
    return [page.title("evidence"), *lines] if lines else []


def _exhibit(exhibit: Evidenced, page: Page) -> list[str]:
    before, after = pair(exhibit.before, exhibit.after, exhibit.unit, page.lang)
    room = page.width - 6 - max(FIGURE, width(before)) - width(after)
    name = cut(named("signal", exhibit.signal, page.lang), max(LABEL, room))
    label = pad(name, LABEL)
    if isinstance(exhibit.after, str) or width(before) > 2 * FIGURE or width(after) > 2 * FIGURE:
        shown = after if exhibit.before is None else f"{before} → {after}"
        lines = page.wrapped(shown, f"  {label} ")
    else:
        # A long name takes of the room before the figure.
        figures = LABEL + FIGURE - width(label)
        row = f"  {label} {pad(before, figures, right=True)} → {pad(after, FIGURE)}"
        lines = [row.rstrip()]
    read = place(exhibit.source)
    beside = f"{pad(lines[0], LABEL + 2 * FIGURE + 6)}  "
    if read and len(lines) == 1 and width(beside) + width(read) <= page.width:
        lines[0] = beside + page.paint.dim(read)
    elif read:
        lines += [page.paint.dim(line) for line in page.wrapped(read, "      ")]
    if exhibit.source is not None and exhibit.source.text and page.verbose:
        raw = plain(exhibit.source.text, limit=3 * page.width)
        lines += [page.paint.dim(line) for line in page.wrapped(raw, "      | ", "      | ")]
    if exhibit.note is not None:
        lines += page.wrapped(sentence(exhibit.note, page.lang), "      ")
    return lines


def parts(analysis: Analysis, page: Page) -> list[str]:
    """Show what each fall is made of."""
    lines: list[str] = []
    for item in analysis.decompositions:
        fall = page.say("label.fall", before=item.before, after=item.after)
        where = f"{page.engine(item.engine)}, {clock(item.onset[1])}".strip(", ")
        lines.append(f"  {fall} · {where}")
        for part in item.parts:
            if part.value == part.low == part.high == 0.0:
                continue
            name = pad(named("part", part.part, page.lang), LABEL - 2)
            points = pad(f"{part.value * 100:.1f}", 6, right=True)
            lines.append(f"    {name} {points}  ({part.low * 100:.1f}–{part.high * 100:.1f})")
        basis = page.say("label.basis", basis=named("basis", item.basis, page.lang))
        note = "" if item.decided else f"; {page.say('label.undecided')}"
        lines += page.wrapped(basis + note, "    ")
    return [page.title("parts", page.say("label.points")), *lines] if lines else []


def runner_up(analysis: Analysis, page: Page) -> list[str]:
    """Say what else it could be, and what would decide."""
    second = analysis.verdict.runner_up
    if second is None:
        return []
    lines = [page.title("runner_up")]
    weight = page.say("label.confidence", value=second.confidence)
    lines += page.field(page.say("label.not_cause"), f"{second.cause} · {weight}")
    if second.would_decide is not None:
        said = sentence(second.would_decide, page.lang)
        lines += page.field(page.say("label.would_decide"), said)
    return lines


def fleet(analysis: Analysis, page: Page) -> list[str]:
    """Say per engine what was found, when there is more than one."""
    if len(analysis.engines) < 2:
        return []
    lines = [page.title("engines")]
    for engine in analysis.engines:
        found = [item for item in analysis.findings if item.engine == engine.engine]
        said = ", ".join(f"{item.cause} {item.confidence:.2f}" for item in found) or "–"
        lines += page.wrapped(said, f"  {pad(cut(plain(engine.engine), LABEL), LABEL)} ")
    return lines


def opinions(analysis: Analysis, page: Page) -> list[str]:
    """List all findings with what speaks for and against each."""
    lines: list[str] = []
    main = selection.main_finding(analysis)
    for finding in analysis.findings:
        lines += _finding(finding, page, with_exhibits=finding is not main)
    return [page.title("opinions"), *lines] if lines else []


def _finding(finding: Finding, page: Page, *, with_exhibits: bool) -> list[str]:
    facts = [
        f"{finding.rule_id} {finding.cause}",
        named("severity", finding.severity, page.lang),
        page.say("label.confidence", value=finding.confidence),
        page.engine(finding.engine),
    ]
    if finding.share is not None:
        facts.append(page.say("label.share", value=finding.share))
    lines = page.wrapped(" · ".join(fact for fact in facts if fact), "  ", "    ")
    lines[0] = page.paint.bold(lines[0])
    lines += page.wrapped(sentence(finding.summary, page.lang), "    ")
    if finding.onset is not None:
        end = page.say("label.goes_on") if finding.end is None else _ended(finding.end, page)
        lines += page.wrapped(
            f"{page.say('label.onset')} {interval(finding.onset)} · {end}", "    "
        )
    if with_exhibits:
        for key, exhibits in (("for", finding.exhibits), ("against", finding.against)):
            if exhibits:
                lines.append(f"    {page.say(f'heading.{key}')}")
                for exhibit in exhibits:
                    lines += [f"  {line}" for line in _exhibit(exhibit, _narrower(page))]
    if finding.would_decide is not None:
        said = sentence(finding.would_decide, page.lang)
        lines += page.wrapped(f"{page.say('label.would_decide')}: {said}", "    ")
    return lines


def _narrower(page: Page) -> Page:
    return replace(page, width=page.width - 2)


def weighing(analysis: Analysis, page: Page) -> list[str]:
    """Say how each opinion entered the verdict."""
    if not analysis.weighed:
        return []
    lines = [page.title("weighing")]
    for item in analysis.weighed:
        role = named("role", item.role, page.lang)
        facts = f"{item.rule_id} {item.cause} · {item.weight:.2f} · {role}"
        where = page.engine(item.engine)
        lines += page.wrapped(facts + (f" · {where}" if where else ""), "  ", "    ")
        lines += page.wrapped(sentence(item.reason, page.lang), "      ")
    return lines
