"""How well a batch at which hits break, or the pool ends, is predicted.

Compared are the characteristic-time model (`forensics.capacity.reuse_model`), the field's formula
``(N - reserve) / L_avg`` (a reserve of 9 of 56 GiB), and the break itself: in a block-exact
simulation of 12 configurations, and in a recording of a real server whose users grew from 2 to 128.
Break: the running batch at which the hit rate is 75 % of its plateau, or at which the pool is
exhausted where that comes first. Also measured: simulated requests per minute on one core.

    python benchmarks/ceiling.py [--only NAME ...] [--traces DIR]

Targets: model error median <= 10 %, worst <= 20 %; at least 100,000 requests a minute.
"""

import argparse
import csv
import gzip
import json
import lzma
import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median

from forensics.capacity.kv_layout import kv_layout
from forensics.capacity.recording import read_load
from forensics.capacity.reuse_model import StepCost, Workload, cliff, load_point, zipf
from forensics.capacity.simulate import Server, Simulation
from forensics.capacity.step_time import Machine
from forensics.capacity.traffic import Chat, mooncake, replay, unique_lengths
from forensics.catalog.gpus import best
from forensics.catalog.models import geometry

DATA = Path(__file__).parent.parent / "tests" / "capacity" / "data"
RESERVE = 9 / 56
SHARE = 0.75
ANSWERED = 2_500
"""Requests measured per load point."""


@dataclass(frozen=True)
class Configuration:
    """A row of the reference table: hardware, pool in tokens, traffic."""

    name: str
    gpu: str
    model: str
    pool: int
    workload: Workload

    @property
    def cost(self) -> StepCost:
        shape = geometry(self.model)
        per_token = kv_layout(shape).bytes_per_token
        return Machine(best(self.gpu), shape.weight_bytes, shape.params, per_token).cost

    @property
    def formula(self) -> float:
        load = self.workload
        return self.pool * (1 - RESERVE) / (load.prompt + load.output)


LLAMA = "Meta-Llama-3-8B"
TENANT = Workload(1638, 410, 512)
CONFIGURATIONS = (
    Configuration("chat-10s", "A100-80GB", LLAMA, 448_656, Workload(400, 150, 256, 6, 10)),
    Configuration("chat-60s", "A100-80GB", LLAMA, 448_656, Workload(400, 150, 256, 6, 60)),
    Configuration("l4-3b", "L4", "Llama-3.2-3B", 114_656, Workload(400, 120, 250, 4, 30)),
    Configuration("l40s", "L40S", LLAMA, 191_856, Workload(500, 269, 300, 4, 30)),
    Configuration("h100-chat", "H100", LLAMA, 447_616, Workload(1000, 200, 350, 5, 20)),
    Configuration("a10-qwen", "A10", "Qwen2.5-7B", 74_672, Workload(1000, 200, 340, 5, 20)),
    Configuration("h200-32b", "H200", "Qwen2.5-32B", 258_864, Workload(1500, 400, 380, 8, 40)),
    Configuration("agent-3s", "H100", LLAMA, 447_616, Workload(3000, 600, 128, 12, 3)),
    Configuration("mha", "A100-80GB", "Llama-2-7b", 117_072, Workload(400, 120, 227, 5, 20)),
    Configuration("a10-tenants", "A10", LLAMA, 36_864, replace(TENANT, popularity=zipf(100, 1.0))),
    Configuration("one-prompt", "A100-80GB", LLAMA, 448_656, TENANT),
    Configuration(
        "400-tenants", "A100-80GB", LLAMA, 448_656, replace(TENANT, popularity=zipf(400, 0.6))
    ),
)


@dataclass(frozen=True)
class Point:
    """A simulated load level."""

    clients: int
    batch: float
    hit_rate: float
    usage: float
    preemptions: int


def simulate(config: Configuration, clients: int, tally: list[float]) -> Point:
    """Run one load level until it is steady, then measure it."""
    load = config.workload
    server = Server(config.pool // 16, 16, 4096, 8192, config.cost)
    simulation = Simulation(server)
    guess = load_point(config.pool, load, config.cost, max(0.05, clients / 20))
    turn = load.think_s + load.output * guess.step_s
    Chat(load).start(simulation, clients, turn)
    begin = time.process_time()
    # Steady: the pool was filled once over, and sessions are as old as they get.
    while simulation.totals.computed + simulation.totals.generated < 1.2 * config.pool:
        simulation.run(simulation.time + turn)
    simulation.run(simulation.time + min(3 * load.turns, 12) * turn)
    warm = simulation.totals.finished
    simulation.reset()
    while simulation.totals.finished < max(ANSWERED, 4 * clients):
        simulation.run(simulation.time + turn)
    totals = simulation.totals
    tally[0] += warm + totals.finished
    tally[1] += time.process_time() - begin
    return Point(
        clients,
        totals.mean(totals.running_s),
        totals.hit_rate,
        totals.mean(totals.usage_s),
        totals.preemptions,
    )


def simulated_break(
    config: Configuration, predicted: float, exhaustion: bool, tally: list[float]
) -> tuple[float, float]:
    """Find the break by simulation: (running batch, live clients)."""
    if exhaustion:
        # More clients than fit: what runs on average is what the pool carries.
        point = simulate(config, round(1.25 * predicted) + 2, tally)
        return point.batch, point.batch
    top = simulate(config, max(1, round(0.15 * predicted)), tally)
    low, high = top, None
    clients = predicted * 0.85
    while high is None:
        point = simulate(config, round(clients), tally)
        if point.hit_rate < SHARE * top.hit_rate:
            high = point
        else:
            low, clients = point, clients * 1.12
    goal = SHARE * top.hit_rate
    part = (low.hit_rate - goal) / (low.hit_rate - high.hit_rate)
    between = low.batch + part * (high.batch - low.batch)
    return between, low.clients + part * (high.clients - low.clients)


def recorded_break() -> tuple[float, float, float, tuple[int, int], float]:
    """Return the break of the recorded server: model, simulation, formula, interval, replayed."""
    with lzma.open(DATA / "h2-concurrency-sweep-v032.jsonl.xz", "rt") as file:
        recording = read_load(file.read().splitlines(), clients_by_prefix=True, common=192)
    cost = StepCost(recording.cost.fixed, 0.0, 0.0, recording.cost.per_sequence)
    load = Workload(192, 48, 90, think_s=3, steady_think=True, own_prefix=192)
    pool = 511 * 32
    found = cliff(pool, load, cost, SHARE).point
    simulation = Simulation(Server(512, 32, 256, 2048, cost, (0, 32, 0)))
    sent = replay(simulation, recording.records)
    simulation.run(1e9)
    rates = {}
    for step, request in sent:
        if request.cached is not None:
            hits, queries = rates.get(step, (0, 0))
            rates[step] = (hits + request.cached, queries + request.prompt)
    steps = [(int(recording.steps[s].split("-")[1]), h / q) for s, (h, q) in sorted(rates.items())]
    goal = SHARE * max(rate for _, rate in steps)
    below = max(users for users, rate in steps if rate >= goal)
    above = min(users for users, rate in steps if rate < goal and users > below)
    ends = dict(steps)
    part = (ends[below] - goal) / (ends[below] - ends[above])
    replayed = below + part * (above - below)
    formula = pool * (1 - RESERVE) / (load.prompt + load.output)
    return found.clients, found.batch, formula, (below, above), replayed


def traces(folder: Path) -> None:
    """Replay public traces against pools of several sizes: hits of the newest release's rules."""
    for path in sorted(folder.glob("*.gz")):
        for pool in (512_000, 2_560_000):
            server = Server(pool // 16, 16, 256, 8192, StepCost(0.002, 0.0, 0.0))
            simulation = Simulation(server)
            with gzip.open(path, "rt") as file:
                for when, request in arrivals(path.name, file):
                    simulation.arrive(when, request)
            begin = time.process_time()
            simulation.run(1e9)
            spent = time.process_time() - begin
            totals = simulation.totals
            print(
                f"{path.name:38} pool {pool:>9,}  {totals.finished:>6,} requests"
                f"  hit rate {totals.hit_rate:.3f}  {totals.preemptions:>6,} preemptions"
                f"  {totals.finished / spent * 60:>9,.0f} requests/min"
            )


def arrivals(name: str, file):
    if name.startswith("mooncake"):
        yield from mooncake(json.loads(line) for line in file)
        return
    rows = list(csv.DictReader(file))
    stamps = [datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in rows]
    yield from unique_lengths(
        (stamp - stamps[0], int(row["ContextTokens"]), int(row["GeneratedTokens"]))
        for stamp, row in zip(stamps, rows, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=None, help="names of configurations")
    parser.add_argument("--traces", type=Path, help="folder of public traces, gzipped")
    asked = parser.parse_args()
    if asked.traces is not None:
        traces(asked.traces)
        return 0
    tally = [0.0, 0.0]
    errors, formula_errors = [], []
    print(
        f"{'configuration':14} {'simulated':>17} {'model':>17} {'error':>6}"
        f" {'formula':>8} {'off':>6}"
    )
    for config in CONFIGURATIONS:
        if asked.only and config.name not in asked.only:
            continue
        found = cliff(config.pool, config.workload, config.cost, SHARE)
        batch, clients = simulated_break(config, found.point.clients, found.exhaustion, tally)
        error = found.point.batch / batch - 1
        factor = config.formula / batch
        errors.append(abs(error))
        formula_errors.append(max(factor, 1 / factor))
        print(
            f"{config.name:14} {batch:>8.1f} /{clients:>7.0f} {found.point.batch:>8.1f}"
            f" /{found.point.clients:>7.0f} {error:>+6.1%} {config.formula:>8.0f}"
            f" {formula_errors[-1]:>5.2f}x" + ("  exhaustion" if found.exhaustion else ""),
            flush=True,
        )
    if not asked.only:
        clients, batch, formula, (below, above), replayed = recorded_break()
        error = clients / replayed - 1
        errors.append(abs(error))
        print(
            f"{'recording h2':14} {'':>9}/{replayed:>7.0f} {batch:>8.1f} /{clients:>7.0f}"
            f" {error:>+6.1%} {formula:>8.0f}        real break between {below} and {above} users"
        )
    rate = tally[0] / tally[1] * 60 if tally[1] else 0.0
    print(f"model: median error {median(errors):.1%}, worst {max(errors):.1%}")
    print(f"formula: median {median(formula_errors):.2f}x, worst {max(formula_errors):.2f}x")
    print(f"simulated requests per minute of one core: {rate:,.0f}")
    good = median(errors) <= 0.10 and max(errors) <= 0.20 and rate >= 100_000
    print("targets met" if good else "targets missed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
