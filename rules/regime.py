"""The preemption regime of a window or a spell: present, and how clearly.

Thresholds are the label rules of diagnosis.md, section 3: at least 0.01 preemptions per finished
request while the pool is full in at least a quarter of the samples. From 0.03 on (section 2) the
count speaks alone: a preempted request gives its blocks back, so samples of a real server's usage
meet the pool less than full.
"""

from dataclasses import replace

from forensics.attribution import Figures, figures
from forensics.attribution.physics import (
    PREEMPTED_OFTEN,
    PREEMPTED_SHARE,
    SATURATED_SHARE,
    exhausted,
)
from forensics.catalog.messages import Message
from forensics.episodes import Span, hit_rate_episodes
from rules.exhaustion import Spell, exhaustions, spells
from rules.exhibits import compare
from rules.interface import Case, Exhibit
from rules.windows import seen_in

REGIME = "note.regime"
SPELLS = "note.regime_spells"

_LEAST_PREEMPTED = 2  # a single one may be chance
# The rate falls some seconds before the pool is full (observed.md 1: up to 14 s before the first
# counted preemption); a fall this much earlier than the pressure itself is another event. Guess.
LEAST_LEAD_S = 12.0
LEAST_LEAD_POINTS = 4.0
# Every tenth request preempted is a regime, whatever the samples of usage met (guess; in 320
# labelled incidents and 300 simulated falls none that was full in less than a quarter had 0.06).
_EVERY_TENTH = 0.1


def regime_strength(window: Figures) -> float:
    """Give 0-1: how clearly the preemption regime was present; 0 without any preemption.

    A server preempts when no block is left, so where usage was not observed the count speaks alone.
    """
    if not window.preemptions:
        return 0.0
    per_request = window.preemptions_per_request
    often = 1.0 if per_request is None else _reached(per_request, PREEMPTED_SHARE)
    if window.saturated is None:
        return often
    # Often enough, the count says that the pool was full between the samples of its usage.
    between = _reached(per_request or 0.0, PREEMPTED_OFTEN)
    return often * max(between, _reached(window.saturated, SATURATED_SHARE))


def is_uncounted(case: Case) -> bool:
    """Tell whether the pool was full in the low time, and nothing would have shown a preemption.

    V0 warns of its first preemption (only V0 swaps), so where its log is there silence is a count.
    """
    older = case.epoch.generation == "V0" or case.timeline.has("swapped")
    warned = older and case.timeline.log_grid.height > 0
    full = (case.after.saturated or 0.0) >= SATURATED_SHARE
    return full and case.after.preemptions is None and not warned


def _is_regime(window: Figures) -> bool:
    """Tell by the rule of the labels; what was not observed does not speak against it."""
    if window.preemptions_per_request is None:
        return window.saturated is None or window.saturated >= SATURATED_SHARE
    return exhausted(window, alone=_EVERY_TENTH)


def _reached(value: float, threshold: float) -> float:
    """Give 1 from the threshold on, 0 up to 0.8 of it: a narrow band, since labels are crisp."""
    return min(1.0, max(0.0, 5.0 * value / threshold - 4.0))


def regimes(case: Case) -> list[tuple[Spell, Case]]:
    """Find the spells of an exhausted pool that were a preemption regime, as a whole.

    Args:
        case: the whole window of an engine.

    Returns:
        Each spell, and the case seen through it. Where nothing counts preemptions, two stats
        intervals that only preemption explains make one.
    """
    found: list[tuple[Spell, Case]] = []
    for spell in spells(case.timeline):
        seen = seen_in(case, spell.inside, spell.baseline)
        if spell.preemptions is None:
            present = spell.conserved >= _LEAST_PREEMPTED
        else:
            present = spell.preemptions >= _LEAST_PREEMPTED and _is_regime(seen.after)
        if present:
            found.append((spell, seen))
    return found


def regime_share(case: Case) -> float:
    """Give the share 0-1 of a fall's lost capacity that the preemption regime can answer for.

    What was lost before the pool came under pressure was lost to eviction alone: if the rate fell,
    and stayed low for a while, before usage left its calm level, the regime answers for the rest.
    """
    present = regime_strength(case.after)
    episode = case.episode
    if present == 0.0 or episode is None:
        return 0.0
    lead = max(LEAST_LEAD_S, LEAST_LEAD_POINTS * case.timeline.step_s)
    inside = [
        item.pressure_onset[0]
        for item in exhaustions(case.timeline)
        if item.run.end >= episode.onset[1] and item.run.onset[1] <= episode.after.end
    ]
    begun = min(inside, default=episode.onset[1])
    if begun - episode.onset[1] < lead:
        return present
    calm = figures(case.timeline, Span(episode.onset[0], begun)).hit_rate
    if calm is None:
        return present
    earlier = (episode.before - calm) / (episode.before - episode.level)
    return present * (1.0 - min(1.0, max(0.0, earlier)))


def course(case: Case, inside: Span) -> tuple[Exhibit, ...]:
    """Tell a regime from mere spells of it: all the time from the change to the data's end.

    By the rule of the labels (0.01 per finished request, a full pool in a quarter of the samples);
    `REGIME` or `SPELLS` is the key of the exhibits' notes.

    Args:
        case: any case of the engine.
        inside: a time under pressure. The change is where the first fall of the hit rate began that
            touches it, else where the pressure began.
    """
    timeline = case.timeline
    around = (
        fall.onset[0]
        for fall in hit_rate_episodes(timeline)
        if fall.onset[0] <= inside.end and fall.end >= inside.start
    )
    since = min((inside.start, *around))
    end = float(timeline.grid["time"][-1])
    seen = figures(timeline, Span(since, end))
    if seen.preemptions is None:
        return ()
    # What is over is not the state up to the end, however often it preempted.
    goes_on = figures(timeline, Span(0.5 * (since + end), end)).preemptions != 0
    note = Message(REGIME if goes_on and _is_regime(seen) else SPELLS, {"since": since})
    shown = compare(
        replace(case, before=None, after=seen), "saturated", "preemptions_per_request", note=note
    )
    return tuple(replace(item, signal=f"{item.signal}_since") for item in shown)
