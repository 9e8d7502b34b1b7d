"""Traffic for the simulation: sessions that grow, traces as published, repeatable runs."""

import pytest

from forensics.capacity.reuse_model import StepCost, Workload, load_point, zipf
from forensics.capacity.simulate import Server, Simulation
from forensics.capacity.simulated import Request, chain
from forensics.capacity.traffic import Chat, Recorded, mooncake, replay, unique_lengths

FAST = StepCost(0.01, 0.0, 0.0)


def test_a_session_brings_its_history() -> None:
    chat = Chat(Workload(64, 32, 32, turns=1e9, fresh_cv=0, output_cv=0))
    simulation = Simulation(Server(200, 16, 8, 2048, FAST))
    chat.start(simulation, 1, 0.0)
    simulation.run(0.32 * 3 + 0.05)
    # First turn: nothing cached. Second: all of the first but the answer's last token. And so on.
    assert simulation.totals.queries == 96 + 160 + 224 + 288
    assert simulation.totals.hits == 0 + 112 + 176 + 240


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def totals(seed):
        load = Workload(200, 60, 80, 4, 2.0, popularity=zipf(8, 1.0))
        simulation = Simulation(Server(600, 16, 64, 512, FAST))
        Chat(load, seed).start(simulation, 24, 3.0)
        simulation.run(120.0)
        return simulation.totals

    assert totals(1) == totals(1)
    assert totals(1) != totals(2)


def test_simulation_and_model_agree_on_a_small_server() -> None:
    load = Workload(shared=256, fresh=64, output=96, turns=5, think_s=8)
    cost = StepCost(0.008, 2e-7, 1e-5)
    simulation = Simulation(Server(2_000, 16, 256, 2048, cost))
    Chat(load).start(simulation, 48, 10.0)
    simulation.run(200.0)
    simulation.reset()
    simulation.run(900.0)
    batch = simulation.totals.mean(simulation.totals.running_s)
    point = load_point(32_000, load, cost, batch)
    assert simulation.totals.hit_rate == pytest.approx(point.hit_rate, abs=0.05)
    assert simulation.totals.mean(simulation.totals.usage_s) == pytest.approx(point.usage, abs=0.05)
    assert point.clients == pytest.approx(48, rel=0.08)


def test_the_last_block_of_a_mooncake_prompt_is_partial() -> None:
    rows = [
        {"timestamp": 0, "input_length": 1030, "output_length": 10, "hash_ids": [1, 2, 3]},
        {"timestamp": 2000, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 4]},
        {"timestamp": 3000, "input_length": "?", "output_length": 5, "hash_ids": []},
    ]
    found = list(mooncake(rows, scale=0.5))
    assert [time for time, _ in found] == [0.0, 1.0]
    assert found[0][1].segments == ((1, 512), (2, 512), (3, 6))
    simulation = Simulation(Server(300, 16, 8, 4096, FAST))
    for time, request in found:
        simulation.arrive(time, request)
    simulation.run(100.0)
    # Two blocks of 512 tokens are shared: 64 blocks of 16.
    assert found[1][1].cached == 1024
    assert simulation.totals.hit_rate == pytest.approx(1024 / (1030 + 1100))


def test_traces_without_prefixes_share_nothing() -> None:
    simulation = Simulation(Server(300, 16, 8, 4096, FAST))
    for time, request in unique_lengths([(0.0, 400, 10), (0.1, 400, 10), (0.2, 400, 10)]):
        simulation.arrive(time, request)
    simulation.run(100.0)
    assert simulation.totals.finished == 3
    assert simulation.totals.hits == 0


def test_recorded_clients_keep_their_pauses() -> None:
    records = [
        Recorded(100.0, 101.0, ((1, 32),), 5, 0, 0),
        Recorded(103.0, 104.0, ((2, 32),), 5, 0, 1),
    ]
    simulation = Simulation(Server(50, 16, 8, 512, FAST))
    (_, first), (_, second) = replay(simulation, records)
    simulation.run(100.0)
    assert first.end == pytest.approx(0.05)
    assert second.arrival == pytest.approx(0.05 + 2.0)


def test_without_prefix_caching_nothing_is_found() -> None:
    simulation = Simulation(Server(50, 16, 8, 512, FAST, prefix_caching=False))
    for place in range(3):
        simulation.arrive(place * 1.0, Request(((1, 64),), 10 + place, 4))
    simulation.run(100.0)
    assert simulation.totals.hits == 0
    assert simulation.totals.finished == 3


def test_chains_depend_on_all_that_came_before() -> None:
    one = chain(Request(((1, 20), (2, 28)), 9, 16), 16)
    other = chain(Request(((3, 20), (2, 28)), 9, 16), 16)
    assert len(one) == len(other) == 4
    assert not set(one) & set(other)
    assert chain(Request(((1, 20), (2, 12)), 8, 1), 16) == one[:2]
