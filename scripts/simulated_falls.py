"""Make labelled falls of the hit rate with the model server, to test what was fitted elsewhere.

    python scripts/simulated_falls.py 600 tests/incidents/simulated.json

Servers, workloads and changes are drawn at random from wide ranges: small and large pools,
sessions, tenants and documents, 2 to 15 s scrapes. A fall is labelled by what happened in its own
windows: the attainable rate fell (diversity), or the gap to it grew (capacity).
"""

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from forensics.diary import EngineDiary, Epoch, KvPool
from forensics.episodes import Episode, hit_rate_episodes
from forensics.timeline import EngineTimeline, Histogram, Origin
from forensics.timeline.derived import derive
from forensics.timeline.grid import Columns
from scripts.attribution_recordings import capacity_share, row_of, write_rows
from scripts.simulated_server import Arrival, Phase, Sample, Server, Simulation

EDGES = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, np.inf])
LEAST_PART = 0.05
START = 1_000_000.0


@dataclass(frozen=True)
class Plan:
    """One run: the server, the load before and after, and how it is watched.

    `eve` is the load of the last `eve_s` before the change, where something else came first.
    """

    kind: str
    server: Server
    before: Phase
    eve: Phase
    after: Phase
    scrape_s: float
    warm_s: float
    eve_s: float
    change_s: float
    end_s: float


def _between(dice: random.Random, low: float, high: float) -> float:
    """Draw a positive number, uniform in its logarithm."""
    return float(np.exp(dice.uniform(np.log(low), np.log(high))))


def plan(dice: random.Random) -> Plan:
    """Draw a server, a workload and a change."""
    kind = dice.choice(KINDS)
    work = dice.choice(WORKLOADS[kind])
    small = dice.random() < 0.3
    pool = int(_between(dice, 18_000, 60_000) if small else _between(dice, 35_000, 450_000))
    scrape = dice.choice((2.0, 2.0, 5.0)) if small else dice.choice((15.0, 15.0, 15.0, 10.0))
    points = dice.uniform(25, 45)
    server = Server(
        pool=pool,
        seats=dice.choice((64, 128, 256, 512)),
        base_s=_between(dice, 0.008, 0.03),
        per_seq_s=_between(dice, 0.0001, 0.0006),
        prefill_tps=_between(dice, 5_000, 30_000),
    )
    before = _load(dice, work, pool, small)
    if kind in ("users", "think", "mix_users") and dice.random() < 0.7:
        server = replace(server, seats=max(4, round(before.users * _between(dice, 0.3, 1.2))))
    eve = _changed(dice, "more_users", before) if kind == "users_then_unique" else before
    after = _changed(dice, kind, eve)
    return Plan(
        kind, server, before, eve, after, scrape,
        warm_s=_between(dice, 10, 30) * scrape,
        eve_s=dice.uniform(2, 15) * scrape,
        change_s=points * scrape,
        end_s=(points + dice.uniform(25, 45)) * scrape,
    )  # fmt: skip


# What a change does, and the workloads it is drawn for.
WORKLOADS: dict[str, tuple[str, ...]] = {
    "users": ("chat", "agent"),
    "think": ("chat", "agent"),
    "prefixes": ("tenant", "documents"),
    "exhaust_users": ("chat", "agent"),
    "exhaust_output": ("chat", "tenant", "agent"),
    "unique": ("tenant", "documents", "single", "agent"),
    "longer": ("chat", "tenant", "documents", "agent"),
    "turns": ("chat", "agent"),
    "batch": ("chat", "tenant", "documents", "agent"),
    "mix_users": ("chat", "tenant"),
    "mix_exhaust": ("chat", "tenant", "documents"),
    "users_then_unique": ("chat", "tenant", "documents", "single", "agent"),
}
KINDS = tuple(WORKLOADS)


def _load(dice: random.Random, work: str, pool: int, small: bool) -> Phase:
    size = 0.25 if small else 1.0
    users = max(3, round(_between(dice, 4, 50)))
    think = _between(dice, 0.05, 1.0) if small else _between(dice, 1.0, 20.0)
    output = max(4, round(_between(dice, 40, 300) * size))
    private = max(20, round(_between(dice, 60, 500) * size))
    spread = dice.uniform(0.2, 0.8)
    if work == "chat":
        shared = round(_between(dice, 128, 1500) * size)
        return Phase(users, think, dice.uniform(3, 8), 1, 0.0, shared, private, output, spread)
    if work == "agent":
        shared = round(_between(dice, 800, 4000) * size)
        return Phase(users, think, dice.uniform(6, 14), 1, 0.0, shared, private, output, spread)
    shared = round(_between(dice, 300, 3500) * size)
    if work == "single":
        return Phase(users, think, 1.0, 1, 0.0, shared, private, output, spread)
    count = max(2, round(_between(dice, 0.15, 1.1) * pool / shared))
    alpha = dice.uniform(0.0, 1.0)
    return Phase(users, think, 1.0, count, alpha, shared, private, output, spread)


def _changed(dice: random.Random, kind: str, load: Phase) -> Phase:
    if kind in ("users", "mix_users"):
        load = replace(load, users=round(load.users * _between(dice, 2, 10)))
    if kind == "more_users":
        load = replace(load, users=round(load.users * _between(dice, 1.9, 5)))
    if kind == "think":
        times = _between(dice, 3, 8)
        load = replace(load, users=round(load.users * times), think_s=load.think_s * times)
    if kind == "prefixes":
        load = replace(load, prefixes=round(load.prefixes * _between(dice, 1.7, 7)))
    if kind == "exhaust_users":
        users = round(load.users * _between(dice, 3, 10))
        load = replace(load, users=users, think_s=min(load.think_s, 4.0))
    if kind in ("exhaust_output", "mix_exhaust"):
        users = round(load.users * _between(dice, 1.5, 6))
        output = round(load.output * _between(dice, 3, 6))
        load = replace(load, users=users, output=output, think_s=min(load.think_s, 3.0))
    if kind in ("unique", "mix_users", "mix_exhaust", "users_then_unique"):
        load = replace(load, unique=dice.uniform(0.4, 1.0))
    if kind == "longer":
        private = round(load.private * _between(dice, 3, 7))
        shared = load.shared if dice.random() < 0.5 else load.shared // 4
        load = replace(load, private=private, shared=shared)
    if kind == "turns":
        load = replace(load, turns=1.0)
    if kind == "batch":
        clients = max(2, round(_between(dice, 3, 60)))
        length = round(_between(dice, 0.5, 4) * (load.shared + load.private))
        load = replace(load, batch=clients, batch_prompt=length)
    return load


def timeline_of(samples: list[Sample], chosen: Plan, dice: random.Random) -> EngineTimeline:
    """Lay the samples on a grid, as if a full or a bare set of metrics had been scraped."""
    count = len(samples)
    times = START + chosen.scrape_s * np.arange(1, count + 1)
    columns = Columns(START, chosen.scrape_s, times, np.ones(count, dtype=bool))
    origin = Origin("metrics", 0, "simulated")
    amounts = {
        "queries": [s.prompt for s in samples],
        "hits": [s.cached for s in samples],
        "prompt_tokens": [s.prompt for s in samples],
        "generation_tokens": [s.generated for s in samples],
        "preemptions": [s.preemptions for s in samples],
        "finished": [s.finished for s in samples],
        "first_tokens": [len(s.prompts) for s in samples],
        "running": [s.running for s in samples],
        "waiting": [s.waiting for s in samples],
        "kv_usage": [s.usage for s in samples],
    }
    for name, values in amounts.items():
        columns.values[name] = np.array(values, dtype=float)
        columns.origins[name] = origin
    pool = float(chosen.server.pool)
    derive(columns, np.full(count, pool))
    known = {"prompt_len": "prompts", "computed_len": "computed"}
    share = {"prompt_len": 0.75, "computed_len": 0.6}
    histograms = {
        name: Histogram(EDGES, times, _counts(samples, attribute), name)
        for name, attribute in known.items()
        if dice.random() < share[name]
    }
    epoch = Epoch(None, None, pool=KvPool(tokens=int(pool), block_size=64))
    grid = columns.frame()
    return EngineTimeline(
        "0", None, chosen.scrape_s, grid, grid.clear(), columns.origins, (),
        EngineDiary("0", None, "0", (epoch,)), histograms,
    )  # fmt: skip


def _counts(samples: list[Sample], attribute: str) -> np.ndarray:
    return np.array(
        [[float((np.array(getattr(s, attribute)) <= e).sum()) for e in EDGES] for s in samples]
    )


def _parts(samples: list[Sample], chosen: Plan, episode: Episode) -> tuple[float, float]:
    """Give how much of a fall was diversity and how much capacity, from the run itself."""
    rates = []
    for span in (episode.baseline, episode.after):
        first = max(0, round((span.start - START) / chosen.scrape_s))
        last = round((span.end - START) / chosen.scrape_s)
        inside = samples[first:last]
        prompt = max(1, sum(s.prompt for s in inside))
        rates.append(
            (sum(s.ideal for s in inside) / prompt, sum(s.cached for s in inside) / prompt)
        )
    (ideal_b, true_b), (ideal_a, true_a) = rates
    return ideal_b - ideal_a, (ideal_a - true_a) - (ideal_b - true_b)


@dataclass(frozen=True)
class Fall:
    """A labelled fall: its run, what was seen of it, and how much each part took of it.

    `arrivals` are the requests since the recording began, on its clock.
    """

    plan: Plan
    timeline: EngineTimeline
    episode: Episode
    arrivals: tuple[Arrival, ...]
    diversity: float
    capacity: float


def fall_of(seed: int) -> Fall | None:
    """Run one plan; None when nothing of it fell."""
    dice = random.Random(seed)
    chosen = plan(dice)
    model = Simulation(chosen.server, seed)
    skip = round(chosen.warm_s / chosen.scrape_s)
    phases = [
        (chosen.warm_s + chosen.change_s - chosen.eve_s, chosen.before),
        (chosen.warm_s + chosen.change_s, chosen.eve),
        (chosen.warm_s + chosen.end_s, chosen.after),
    ]
    samples = model.run(phases, chosen.scrape_s)[skip:]
    if sum(len(s.prompts) for s in samples) < 60:
        return None
    timeline = timeline_of(samples, chosen, dice)
    change = START + chosen.change_s
    near = 10 * chosen.scrape_s
    falls = [e for e in hit_rate_episodes(timeline) if abs(e.onset[0] - change) < near]
    if not falls:
        return None
    episode = max(falls, key=lambda e: e.before - e.level)
    diversity, capacity = _parts(samples, chosen, episode)
    if max(diversity, capacity) < LEAST_PART:
        return None
    begun = skip * chosen.scrape_s
    arrivals = tuple(
        replace(one, at=START + one.at - begun) for one in model.arrivals if one.at > begun
    )
    return Fall(chosen, timeline, episode, arrivals, diversity, capacity)


def row(seed: int) -> dict | None:
    """Give the readings of one labelled fall; None when nothing fell."""
    fall = fall_of(seed)
    if fall is None:
        return None
    share = capacity_share(fall.diversity, fall.capacity)
    return row_of(f"{fall.plan.kind}-{seed}", 0, share, fall.timeline, fall.episode)


def main(arguments: list[str]) -> int:
    """Run as many plans as asked for and write the falls."""
    count, target = int(arguments[0]), Path(arguments[1])
    write_rows(target, (found for seed in range(count) if (found := row(seed)) is not None))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
