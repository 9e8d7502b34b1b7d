"""The labelled incidents: read from the archives in `tests/incidents`, one at a time.

`development.tar.xz` may be looked at; `held-out.tar.xz` (numbers divisible by three) is only ever
summed up. Each member folder holds a server log, one query_range answer and the label.
"""

import json
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import parsers
from forensics.config import Options
from forensics.diary.engines import map_engines
from forensics.diary.write import write_diary
from forensics.episodes import Episode, hit_rate_episodes
from forensics.timeline import EngineTimeline
from forensics.timeline.build import build_engine
from forensics.timeline.clocks import settle
from parsers.interface import ReadOptions

ARCHIVES = {"development": "development.tar.xz", "held-out": "held-out.tar.xz"}
# A part smaller than this is no cause by the labels' own rule.
PRESENT = 0.05
# The change lies this far at most from the onset of the fall it caused: ten scrapes.
NEAR_S = 150.0


@dataclass(frozen=True)
class Incident:
    """One labelled incident, its files unpacked.

    Attributes:
        id: folder name.
        folder: where its files are.
        truth: the label.
    """

    id: str
    folder: Path
    truth: dict

    @property
    def held_out(self) -> bool:
        """Whether it is only ever summed up."""
        return int(self.id.rsplit("-", 1)[1]) % 3 == 0

    @property
    def paths(self) -> list[Path]:
        """What a user would hand over."""
        return [self.folder / "server.log", self.folder / "prometheus.json"]

    @property
    def capacity_share(self) -> float | None:
        """Capacity's share of what diversity and capacity took; None when neither took anything."""
        lost = self.truth["losses"]
        if max(lost["diversity"], lost["capacity"]) < PRESENT:
            return None
        if lost.get("cold", 0.0) > 0.03:
            return None
        capacity, diversity = max(lost["capacity"], 0.0), max(lost["diversity"], 0.0)
        return capacity / (capacity + diversity)

    @cached_property
    def timeline(self) -> EngineTimeline:
        """The engine on UTC."""
        return read_timeline(self.paths)


def read_timeline(paths: list[Path]) -> EngineTimeline:
    """Read files of one engine up to its timeline."""
    evidence = parsers.read([str(path) for path in paths], ReadOptions())
    engines = map_engines(evidence)
    evidence = settle(evidence, engines).evidence
    key = engines.keys[0]
    return build_engine(evidence, engines, key, write_diary(evidence, engines, key, Options()))


def main_fall(case: Incident) -> tuple[EngineTimeline, Episode] | None:
    """Give the greatest fall near the labelled change, else the greatest at all."""
    timeline = case.timeline
    falls = hit_rate_episodes(timeline)
    if not falls:
        return None
    change = case.truth["change_at_unix"]
    best = max(falls, key=lambda e: (abs(e.onset[0] - change) < NEAR_S, e.before - e.level))
    return timeline, best


def incidents(folder: Path, split: str | None = None) -> Iterator[Incident]:
    """Unpack the incidents one split after the other; the files vanish at the end.

    Args:
        folder: where the archives lie.
        split: "development", "held-out", or None for both.
    """
    with tempfile.TemporaryDirectory(prefix="incidents-") as place:
        for name, archive in ARCHIVES.items():
            if split is not None and name != split:
                continue
            with tarfile.open(folder / archive) as packed:
                packed.extractall(place, filter="data")
            for path in sorted((Path(place)).glob("inc-*")):
                case = Incident(
                    path.name, path, json.loads((path / "truth.json").read_text("utf-8"))
                )
                if case.held_out == (name == "held-out"):
                    yield case
