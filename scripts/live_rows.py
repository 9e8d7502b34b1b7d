"""Read the falls of real servers under drawn loads into the rows that `train_attribution.py` uses.

    python scripts/live_rows.py tests/incidents/live.tar.xz tests/incidents/live.json

Each member folder holds one query_range answer of a released vLLM server (0.13.0, 0.20.2 or 0.32.0,
on a CPU, a tiny model with random weights, a small fixed pool) and what its client knew: when the
load changed, and for every request the prompt tokens, how many the server found in its cache, and
how many a cache without limit would have held. So the parts of each fall are exact in its own
windows.
"""

import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.incident_set import PRESENT, read_timeline
from forensics.episodes import Episode, Span, hit_rate_episodes
from scripts.attribution_recordings import capacity_share, row_of, write_rows


def recordings(archive: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Unpack the recordings: the metrics file of each, and its label."""
    with tempfile.TemporaryDirectory(prefix="live-") as place, tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
        for label in sorted(Path(place).glob("*/truth.json")):
            yield label.with_name("prometheus.json"), json.loads(label.read_text("utf-8"))


def parts(truth: Mapping[str, Any], episode: Episode) -> tuple[float, float]:
    """Give how much of a fall was diversity and how much capacity, hit-rate points.

    What a cache without limit would have hit tells the one, how much less was hit the other.
    """
    hit, ideal = zip(
        *(_rates(truth, span) for span in (episode.baseline, episode.after)), strict=True
    )
    diversity = ideal[0] - ideal[1]
    return diversity, (ideal[1] - hit[1]) - (ideal[0] - hit[0])


def _rates(truth: Mapping[str, Any], span: Span) -> tuple[float, float]:
    """Give what hit and what could have hit, of the prompt tokens submitted in a span."""
    begun = truth["requests"]["at_unix"]
    inside = [row for row in truth["requests"]["rows"] if span.start <= begun + row[0] < span.end]
    prompt = max(1, sum(row[1] for row in inside))
    return sum(row[2] for row in inside) / prompt, sum(row[3] for row in inside) / prompt


def rows(metrics: Path, truth: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the labelled falls of one recording."""
    timeline = read_timeline([metrics])
    for number, episode in enumerate(hit_rate_episodes(timeline)):
        diversity, capacity = parts(truth, episode)
        if max(diversity, capacity) < PRESENT:
            continue
        share = capacity_share(diversity, capacity)
        found = row_of(metrics.parent.name, number, share, timeline, episode)
        yield {**found, "version": truth["version"]}


def main(arguments: list[str]) -> int:
    """Write the rows of all recordings in an archive."""
    source, target = (Path(argument) for argument in arguments)
    write_rows(target, (row for found in recordings(source) for row in rows(*found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
