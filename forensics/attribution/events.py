"""The cold part of a fall: content lost with a restart, a reset or a sleep, and won back since."""

import numpy as np
import polars as pl

from forensics.attribution.records import Part
from forensics.episodes import Episode
from forensics.timeline import EngineTimeline, Mark

# Events after which nothing is left in the cache (vllm-memory-model.md, section 5).
LOSES_CACHE = frozenset({"restart", "reset", "start", "sleep"})
# A fall starts within 1-2 scrapes of the event (diagnosis.md 3.2); the server may be down between.
_NEAR_STEPS = 2.0
# Clocks of log and metrics are matched to a stats interval (10 s by default) at best.
_CLOCK_SLACK_S = 15.0


def causing_event(timeline: EngineTimeline, episode: Episode) -> Mark | None:
    """Find the event that emptied the cache at the onset; None when there was none."""
    margin = max(_NEAR_STEPS * timeline.step_s, _CLOCK_SLACK_S)
    early, late = episode.onset[0] - margin, episode.onset[1] + margin
    near = [m for m in timeline.marks if m.kind in LOSES_CACHE and early <= m.time <= late]
    # A process start that opens the recording is no event: nothing was cached before it.
    near = [m for m in near if m.kind != "start" or m.time > episode.baseline.start + margin]
    return min(near, key=lambda mark: abs(mark.time - episode.onset[0])) if near else None


def cold_part(timeline: EngineTimeline, episode: Episode) -> Part | None:
    """Measure what an event at the onset took and the traffic has brought back since.

    The rate climbs while prefixes are seen again. Of what was lost at the event, the part that came
    back by the time the rate settles is cold; what did not is judged like any other fall. Where
    intervals are long the climb lies within the low time itself, whose first third is then the low
    level and whose last third the settled one.
    """
    if causing_event(timeline, episode) is None:
        return None
    fall = episode.before - episode.level
    later = _later(timeline, episode)
    if later is None:
        return Part("cold", fall, 0.0, fall)
    low, level, spread = later
    lost = max(episode.before - low, fall)
    back, error = (float(np.clip(x / lost, 0.0, 1.0)) * fall for x in (level - low, spread))
    return Part("cold", back, max(0.0, back - error), min(fall, back + error))


def _later(timeline: EngineTimeline, episode: Episode) -> tuple[float, float, float] | None:
    """Give the low rate, and rate and error of what comes after the low time (or its last third).

    The error is twice the standard error of the rate, 0.01 at least.
    """
    weight = "hit_weight" if episode.signal == "hit_rate" else "queries"
    grid = (
        timeline.grid.filter(pl.col("time") > episode.onset[0])
        .select("time", episode.signal, weight)
        .drop_nulls()
    )
    beyond, low = grid.filter(pl.col("time") > episode.end), episode.level
    if beyond.height < 3 or not episode.recovered:
        inside = grid.filter(pl.col("time") <= episode.after.end)
        beyond = inside.tail(max(3, inside.height // 3))
        low = min(low, _mean(inside.head(max(1, inside.height // 3)), episode.signal, weight))
    if beyond.height < 3 or float(beyond[weight].sum()) <= 0:
        return None
    rate = beyond[episode.signal].to_numpy()
    level = _mean(beyond, episode.signal, weight)
    spread = 2.0 * float(rate.std()) / float(np.sqrt(rate.size))
    return low, level, max(0.01, spread)


def _mean(rows: pl.DataFrame, signal: str, weight: str) -> float:
    """Give the weighted mean rate of some points; infinite without any weight."""
    total = float(rows[weight].sum())
    return float((rows[signal] * rows[weight]).sum()) / total if total > 0 else float("inf")
