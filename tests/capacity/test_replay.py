"""Recordings of a real vLLM 0.32.0 server, replayed block by block: hits within two points.

The load files are those of the recordings `h2-concurrency-sweep-v032` (one server of 512 blocks,
users step from 2 to 128) and `h-sweep-v032` (800 blocks, max_num_seqs 2 to 128), unchanged. Hit
rates: `h2` from the server's counters per step, `h` from the tokens the server reported per answer.
"""

import lzma
from pathlib import Path

import pytest

from forensics.capacity.recording import read_load
from forensics.capacity.reuse_model import Workload, cliff
from forensics.capacity.simulate import Server, Simulation
from forensics.capacity.traffic import replay

DATA = Path(__file__).parent / "data"


def lines(name):
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt") as file:
        return file.read().splitlines()


def rates(recording, server):
    simulation = Simulation(server)
    sent = replay(simulation, recording.records)
    simulation.run(1e9)
    found = {}
    for step, request in sent:
        if recording.answered[request.label] and request.cached is not None:
            hits, queries, preempted = found.get(step, (0, 0, 0))
            found[step] = (
                hits + request.cached,
                queries + request.prompt,
                preempted + request.preempted,
            )
    assert simulation.pool.free == server.blocks - 1
    return {
        recording.steps[step]: (hits / queries, preempted)
        for step, (hits, queries, preempted) in found.items()
    }


def test_the_break_of_growing_users_is_replayed_at_every_step() -> None:
    recording = read_load(lines("h2-concurrency-sweep-v032"), clients_by_prefix=True, common=192)
    found = rates(recording, Server(512, 32, 256, 2048, recording.cost, (0, 32, 0)))
    measured = {
        "users-002": 0.7463,
        "users-004": 0.8457,
        "users-008": 0.8519,
        "users-016": 0.8583,
        "users-032": 0.8564,
        "users-064": 0.5289,
        "users-128": 0.4447,
    }
    assert set(found) == set(measured)
    for step, rate in measured.items():
        assert found[step][0] == pytest.approx(rate, abs=0.02), step
    # Preemptions of the real server: none up to 32 users, 2 at 64, 72 at 128.
    assert [found[step][1] for step in measured][:5] == [0] * 5
    assert 0 < found["users-064"][1] <= 6
    assert found["users-128"][1] == pytest.approx(72, rel=0.3)


def test_the_model_puts_the_break_where_the_real_server_has_it() -> None:
    recording = read_load(lines("h2-concurrency-sweep-v032"), clients_by_prefix=True, common=192)
    # Users come back to 192 tokens of their own after 1.5-4.5 s; 48 new tokens, 90 of answer.
    users = Workload(192, 48, 90, think_s=3, steady_think=True, own_prefix=192)
    found = cliff(511 * 32, users, recording.cost, 0.75).point
    assert 32 < found.clients < 64
    # Hit rates measured at 32 and 64 users cross 75 % of the plateau at 53.
    assert found.clients == pytest.approx(53, rel=0.10)
    assert not found.exhausted


@pytest.mark.parametrize(
    ("seats", "measured", "preemptions"),
    [
        (2, 0.6563, 0),
        (4, 0.6458, 0),
        (8, 0.6285, 0),
        (16, 0.6264, 0),
        (32, 0.6274, 0),
        (64, 0.6386, 0),
        (128, 0.6302, 262),
    ],
)
def test_the_batch_sweep_has_no_break_and_is_replayed(seats, measured, preemptions) -> None:
    recording = read_load(lines(f"h-sweep-v032-mns-{seats:03d}"))
    found = rates(recording, Server(800, 32, seats, 2048, recording.cost, (0, 32, 0)))
    rate, preempted = found["measure"]
    assert rate == pytest.approx(measured, abs=0.02)
    assert preempted == pytest.approx(preemptions, rel=0.25)
    told = [
        (cached, recording.records[place].segments)
        for place, cached in enumerate(recording.cached)
        if cached is not None and recording.records[place].step == 1
    ]
    tokens = sum(sum(length for _, length in segments) for _, segments in told)
    assert sum(cached for cached, _ in told) / tokens == pytest.approx(measured, abs=0.001)
