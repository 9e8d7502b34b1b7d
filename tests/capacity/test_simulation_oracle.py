"""The fast simulation against a slow one that takes every step, its blocks in plain lists."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.capacity.block_pool import BlockPool
from forensics.capacity.reuse_model import StepCost
from forensics.capacity.simulate import Server, Simulation
from forensics.capacity.simulated import Request, chain


class PlainPool:
    """The free queue as a list, the cache as a list of (hash, block) in order of registration."""

    def __init__(self, blocks, head_first):
        self.queue = list(range(1, blocks))
        self.ref = dict.fromkeys(self.queue, 0)
        self.hash = dict.fromkeys(self.queue)
        self.known = []
        self.head_first = head_first

    def lookup(self, hashes, limit):
        found = []
        for value in hashes[:limit]:
            blocks = [block for known, block in self.known if known == value]
            if not blocks:
                break
            found.append(blocks[0])
        return found

    def touch(self, blocks):
        for block in blocks:
            if self.ref[block] == 0:
                self.queue.remove(block)
            self.ref[block] += 1

    def allocate(self, count):
        taken = [self.queue.pop(0) for _ in range(count)]
        for block in taken:
            self.ref[block] = 1
            if self.hash[block] is not None:
                self.known.remove((self.hash[block], block))
                self.hash[block] = None
        return taken

    def register(self, block, value):
        self.hash[block] = value
        self.known.append((value, block))

    def release(self, blocks):
        for block in reversed(blocks):
            self.ref[block] -= 1
            if self.ref[block] == 0:
                if self.head_first and self.hash[block] is None:
                    self.queue.insert(0, block)
                else:
                    self.queue.append(block)


def step_by_step(server, arrivals):
    """Run vLLM's scheduling loop literally: one iteration per step, one token per decode."""
    size = server.block_size
    pool = PlainPool(server.blocks, server.version >= (0, 24, 0))
    waiting, running = deque(), []
    state = {}
    clock = 0.0
    todo = deque(sorted(arrivals, key=lambda item: item[0]))
    while todo or waiting or running:
        while todo and todo[0][0] <= clock:
            waiting.append(todo.popleft()[1])
        if not waiting and not running:
            clock = todo[0][0]
            continue
        budget = server.max_num_batched_tokens
        preempted, scheduled = False, {}
        place = 0
        while place < len(running):
            request = running[place]
            mine = state[request]
            want = min(mine["length"] - mine["computed"], budget)
            if want <= 0:
                place += 1
                continue
            need = -(-(mine["computed"] + want) // size) - len(mine["blocks"])
            while len(pool.queue) < need:
                preempted = True
                victim = running.pop()
                other = state[victim]
                pool.release(other["blocks"])
                other.update(blocks=[], computed=0, registered=0)
                other["preempted"] += 1
                scheduled.pop(victim, None)
                waiting.appendleft(victim)
                if victim is request:
                    break
            if request not in running:
                continue
            mine["blocks"] += pool.allocate(max(0, need))
            _register(pool, mine, mine["computed"] + want, size)
            scheduled[request] = want
            budget -= want
            place += 1
        while waiting and not preempted and budget > 0 and len(running) < server.max_num_seqs:
            request = waiting[0]
            mine = state.setdefault(
                request,
                {
                    "blocks": [],
                    "computed": 0,
                    "registered": 0,
                    "length": request.prompt,
                    "hashes": chain(request, size),
                    "cached": None,
                    "preempted": 0,
                },
            )
            found = pool.lookup(mine["hashes"], (mine["length"] - 1) // size)
            hit = len(found) * size
            want = min(mine["length"] - hit, budget)
            idle = sum(1 for block in found if pool.ref[block] == 0)
            whole = mine["length"] if server.version >= (0, 19, 0) else hit + want
            if -(-whole // size) - len(found) + idle > len(pool.queue):
                break
            waiting.popleft()
            if mine["cached"] is None:
                mine["cached"] = hit
            pool.touch(found)
            mine.update(blocks=list(found), computed=hit, registered=len(found))
            mine["blocks"] += pool.allocate(-(-(hit + want) // size) - len(found))
            _register(pool, mine, hit + want, size)
            running.append(request)
            scheduled[request] = want
            budget -= want
        assert scheduled, "nothing can move"
        clock += server.cost.fixed
        for request, want in scheduled.items():
            mine = state[request]
            mine["computed"] += want
            if mine["computed"] < mine["length"]:
                continue
            if mine["length"] + 1 - request.prompt >= request.output:
                running.remove(request)
                pool.release(mine["blocks"])
                mine["end"] = clock
            else:
                mine["length"] += 1
    return state


def _register(pool, mine, tokens, size):
    for place in range(mine["registered"], tokens // size):
        pool.register(mine["blocks"][place], mine["hashes"][place])
    mine["registered"] = max(mine["registered"], tokens // size)


requests = st.lists(
    st.tuples(
        st.integers(0, 3),  # which shared prefix
        st.integers(0, 40),  # its length
        st.integers(1, 40),  # private prompt
        st.integers(1, 30),  # output
        st.integers(0, 60),  # arrival in steps
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(
    rows=requests,
    blocks=st.integers(22, 60),
    seats=st.integers(1, 8),
    budget=st.sampled_from([16, 64, 2048]),
    version=st.sampled_from([(0, 11, 2), (0, 19, 0), (0, 32, 0)]),
)
def test_strides_change_nothing(rows, blocks, seats, budget, version) -> None:
    server = Server(blocks, 8, seats, budget, StepCost(1.0, 0.0, 0.0), version)
    arrivals = []
    for place, (prefix, shared, private, output, when) in enumerate(rows):
        segments = ((100 + prefix, shared), (1000 + place, private))
        # Half a step early, so that both agree on which step it is in time for.
        made = Request(segments if shared else segments[1:], 5000 + place, output, place)
        arrivals.append((max(0.0, when - 0.5), made))
    arrivals.sort(key=lambda item: (item[0], item[1].label))
    slow = step_by_step(server, arrivals)
    simulation = Simulation(server)
    for time, request in arrivals:
        simulation.arrive(time, request)
    simulation.run(1e6)
    for _, request in arrivals:
        expected = slow[request]
        assert request.end == pytest.approx(expected["end"]), request.label
        assert request.cached == expected["cached"], request.label
        assert request.preempted == expected["preempted"], request.label
    assert simulation.pool.free == blocks - 1
    assert simulation.totals.finished == len(rows)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_linked_queue_is_a_queue(data) -> None:
    head_first = data.draw(st.booleans())
    fast, plain = BlockPool(12, head_first=head_first), PlainPool(12, head_first)
    held = []
    for turn in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["take", "hit", "drop"])):
            case "take" if fast.free:
                count = data.draw(st.integers(1, fast.free))
                taken = fast.allocate(count)
                assert taken == plain.allocate(count)
                for block in taken[: data.draw(st.integers(0, count))]:
                    fast.register(block, 50 + (turn * 7 + block) % 5)
                    plain.register(block, 50 + (turn * 7 + block) % 5)
                held.append(taken)
            case "hit":
                value = data.draw(st.integers(50, 54))
                found = fast.lookup([value], 1)
                assert found == plain.lookup([value], 1)
                if found:
                    fast.touch(found)
                    plain.touch(found)
                    held.append(found)
            case "drop" if held:
                blocks = held.pop(data.draw(st.integers(0, len(held) - 1)))
                fast.release(blocks)
                plain.release(blocks)
        assert fast.queue() == plain.queue
        assert fast.free == len(plain.queue)


def test_released_blocks_go_last_block_first() -> None:
    pool = BlockPool(5)
    taken = pool.allocate(3)
    for place, block in enumerate(taken):
        pool.register(block, place)
    pool.release(taken)
    assert pool.queue() == [4, 3, 2, 1]


def test_a_block_without_hash_is_used_first_since_0_24() -> None:
    for head_first, expected in ((True, [2, 3, 1]), (False, [3, 2, 1])):
        pool = BlockPool(4, head_first=head_first)
        taken = pool.allocate(2)
        pool.register(taken[0], 7)
        pool.release(taken)
        assert pool.queue() == expected
