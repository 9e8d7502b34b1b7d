"""False alarms on servers whose hit rate stays where it is.

    python benchmarks/controls.py [--servers 300] [--first 70000]

Servers and workloads are those of `scripts/simulated_falls.py`, with seeds that nothing was fitted
to; nothing changes in half of them, and the number of users by up to 1.4 times in the others. A
server whose true hit rate of each third of the recording lies within 0.05 of the whole is a
control: naming a cause of a fall there is a false alarm. Intervals are 95 % Wilson intervals.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.diagnosis import HIT_RATE_CAUSES, wilson
from forensics.pipeline.judge import judge_engine
from forensics.timeline import EngineTimeline
from forensics.verdict import weigh
from scripts.simulated_falls import plan, timeline_of
from scripts.simulated_server import Sample, Simulation

STEADY = 0.05
LEAST_REQUESTS = 60
WARM_S = 600.0


def steady_server(seed: int) -> EngineTimeline | None:
    """Run one server; None when its hit rate moved, or hardly anything was asked of it."""
    dice = random.Random(seed)
    chosen = plan(dice)
    load = chosen.before
    if dice.random() < 0.5:
        times = float(np.exp(dice.uniform(np.log(0.7), np.log(1.4))))
        load = replace(load, users=max(2, round(load.users * times)))
    warm = max(chosen.warm_s, WARM_S)
    phases = [(warm + chosen.change_s, chosen.before), (warm + chosen.end_s, load)]
    samples = Simulation(chosen.server, seed).run(phases, chosen.scrape_s)
    samples = samples[round(warm / chosen.scrape_s) :]
    if sum(len(sample.prompts) for sample in samples) < LEAST_REQUESTS:
        return None
    third, whole = len(samples) // 3, _rate(samples)
    thirds = [_rate(samples[at * third : (at + 1) * third]) for at in range(3)]
    if any(abs(rate - whole) >= STEADY for rate in thirds):
        return None
    return timeline_of(samples, chosen, dice)


def _rate(samples: Sequence[Sample]) -> float:
    prompt = sum(sample.prompt for sample in samples)
    return sum(sample.cached for sample in samples) / max(1, prompt)


def verdict_of(timeline: EngineTimeline) -> str:
    """Judge one server by all rules."""
    judged = judge_engine(timeline, (timeline,))
    falls = [case for case in judged.cases if case.episode is not None]
    verdict, _ = weigh(judged.judged, falls, judged.missing, None, judged.unseen)
    return verdict.cause


def main(arguments: Sequence[str]) -> int:
    """Print how often which verdict was given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", type=int, default=300)
    parser.add_argument("--first", type=int, default=70_000, help="first seed")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.servers)
    said = Counter(
        verdict_of(timeline) for seed in seeds if (timeline := steady_server(seed)) is not None
    )
    total = said.total()
    alarms = sum(said[cause] for cause in HIT_RATE_CAUSES)
    low, high = wilson(alarms, total)
    print(f"false alarms {alarms / max(1, total):.3f} [{low:.3f}, {high:.3f}] ({alarms}/{total})")
    for cause, count in said.most_common():
        print(f"  {cause:24s} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
