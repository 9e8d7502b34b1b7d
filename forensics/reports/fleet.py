"""Analysis → the comparison of engines: a row and a small still chart for each.

The small charts are written as SVG paths here rather than by the chart converter: fifty of them
take a millisecond and a kilobyte each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from forensics.analysis import Analysis, EngineTracks, EngineView
from forensics.catalog.messages import say_number
from forensics.reports import selection
from forensics.reports.layout import cells
from forensics.reports.plain import plain

_CELLS, _WIDTH, _HEIGHT = 90, 180, 26


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine among others; "–" where something is not known."""

    engine: str
    instance: str | None
    version: str
    model: str
    gpu: str
    pool: str
    spark: Markup
    found: str


def drawn(analysis: Analysis, most: int) -> Sequence[EngineTracks]:
    """Choose the engines to draw in full: the verdict's first, then those with findings."""
    main = selection.main_tracks(analysis)
    named = {item.engine for item in analysis.findings}
    rest = [tracks for tracks in analysis.tracks if tracks is not main]
    ordered = sorted(rest, key=lambda tracks: tracks.engine not in named)
    return [*([main] if main else []), *ordered][:most]


def rows(analysis: Analysis) -> Sequence[EngineRow]:
    """Describe every engine in one row; none at all when no engine is known."""
    by_engine = {tracks.engine: tracks for tracks in analysis.tracks}
    return [_row(analysis, view, by_engine.get(view.engine)) for view in analysis.engines]


def _row(analysis: Analysis, view: EngineView, tracks: EngineTracks | None) -> EngineRow:
    last = view.epochs[-1] if view.epochs else None
    found = [item for item in analysis.findings if item.engine == view.engine]
    tokens = None if last is None else last.kv_pool.tokens
    return EngineRow(
        engine=view.engine,
        instance=view.instance,
        version=(last and last.vllm_version) or "–",
        model=(last and last.model) or "–",
        gpu=(last and (last.gpu.name or ", ".join(last.gpu.candidates))) or "–",
        pool="–" if tokens is None else say_number(tokens),
        spark=_spark(tracks, analysis.watched),
        found=", ".join(f"{item.cause} {item.confidence:.2f}" for item in found) or "–",
    )


def _spark(tracks: EngineTracks | None, watched: tuple[float, float] | None) -> Markup:
    track = None if tracks is None else tracks.signals.get("hit_rate")
    if track is None or not track.times:
        return Markup("–")
    span = watched or (track.times[0], track.times[-1])
    path, pen_up = [], True
    for at, value in enumerate(cells(track.times, track.values, span, _CELLS)):
        if value is None:
            pen_up = True
            continue
        x = (at + 0.5) * _WIDTH / _CELLS
        y = _HEIGHT - 1 - min(1.0, max(0.0, value)) * (_HEIGHT - 2)
        path.append(f"{'M' if pen_up else 'L'}{x:g} {y:.1f}")
        pen_up = False
    seen = [value for value in track.values if value is not None]
    if not seen:
        return Markup("–")
    label = escape(f"{plain(tracks.engine) if tracks else ''}: {seen[0]:.2f} – {seen[-1]:.2f}")
    return Markup(
        f'<svg class="spark" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}"><title>{label}</title>'
        f'<path d="{"".join(path)}" fill="none" stroke="var(--hit)" stroke-width="1.5"'
        ' stroke-linecap="round"/></svg>'
    )
