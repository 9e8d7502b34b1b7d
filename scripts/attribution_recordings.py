"""Read the falls of real recordings into the rows that `train_attribution.py` learns from.

    python scripts/attribution_recordings.py FOLDER tests/incidents/recordings.json

Each folder of FOLDER is one server's recording with a ``truth.json`` that says what was done to it
and when. A fall takes the label of the last cause that began before it; recordings of another kind
of cause, and restarts, are left out. Only the readings of the witnesses are kept.
"""

import json
import math
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.incident_set import read_timeline
from forensics.attribution.figures import figures
from forensics.attribution.onset import shape
from forensics.attribution.witnesses import readings
from forensics.episodes import Episode, hit_rate_episodes
from forensics.timeline import EngineTimeline

# What was done -> the capacity share of what it takes. A sweep adds users with a history each.
SHARES = {
    "preemption_cliff": 1.0,
    "lru_eviction": 1.0,
    "long_context_burst": 1.0,
    "concurrency_sweep": 1.0,
    "prefix_diversity_loss": 0.0,
}
# A change point lies within a few scrapes (2 s) of the cause it belongs to.
_LATE_S = 10.0


def label(truth: dict, episode: Episode) -> float | None:
    """Give the capacity share of one fall; None when its cause is of another kind."""
    causes = truth.get("causes") or [{"cause": truth["cause"], "onset_utc": truth["onset_utc"]}]
    best: tuple[float, float | None] = (-1.0, None)
    for item in causes:
        name, stamp = item["cause"], item.get("onset_utc")
        begun = datetime.fromisoformat(stamp).timestamp() if stamp else 0.0
        if best[0] < begun <= episode.onset[1] + _LATE_S:
            best = (begun, SHARES.get(name))
    return best[1]


def rows(folder: Path) -> list[dict]:
    """Give the labelled falls of one recording."""
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    timeline = read_timeline([folder])
    found = []
    for number, episode in enumerate(hit_rate_episodes(timeline)):
        share = label(truth, episode)
        if share is not None:
            found.append(row_of(folder.name, number, share, timeline, episode))
    return found


def row_of(
    recording: str, number: int, share: float, timeline: EngineTimeline, episode: Episode
) -> dict[str, Any]:
    """Give the row that is kept of a labelled fall: its capacity share and what was read of it."""
    read = readings_of(timeline, episode)
    return {
        "recording": recording,
        "fall": number,
        "capacity_share": round(share, 3),
        "before": round(episode.before, 3),
        "after": round(episode.level, 3),
        "readings": {name: round(read[name], 4) for name in sorted(read)},
    }


def capacity_share(diversity: float, capacity: float) -> float:
    """Give the capacity share of what diversity and capacity took; one at least took something."""
    lost, missed = max(0.0, capacity), max(0.0, diversity)
    return lost / (lost + missed)


def write_rows(target: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, one a line."""
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    target.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def readings_of(timeline: EngineTimeline, episode: Episode) -> dict[str, float]:
    """Read all witnesses of a fall; one that was not observed is left out."""
    stated = timeline.diary.at(episode.onset[1]).pool.tokens
    pool = float(stated) if stated else None
    before = figures(timeline, episode.baseline, pool)
    after = figures(timeline, episode.after, pool)
    course = shape(timeline, episode, pool)
    found = readings(timeline, episode, before, after, course, pool)
    return {name: one.value for name, one in found.items() if math.isfinite(one.value)}


def main(arguments: list[str]) -> int:
    """Write the rows of all recordings in a folder."""
    source, target = (Path(argument) for argument in arguments)
    found = []
    for path in sorted(source.glob("*/truth.json")):
        found += rows(path.parent)
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
