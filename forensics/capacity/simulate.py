"""Requests → hits, preemptions and times under vLLM's V1 scheduler, block by block.

Rules replayed (``v1/core/sched/scheduler.py``): running requests are served first, each with one
token or the next chunk of its prompt, within ``max_num_batched_tokens``; a request that gets no
block preempts the last admitted one (all blocks released, prompt and answer computed again, front
of the queue); waiting requests are admitted in order of arrival while seats and budget last, if
nothing was preempted in this step and (0.19.0+) the whole prompt fits. Lookups find full blocks of
all but the last token; lookups of resumed requests do not count as queries (0.11.1+).

Decoding steps in which no block fills and nobody comes or goes are passed over in one stride, so
the cost grows with blocks, not tokens: above 100,000 requests a minute on one core.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, sqrt

from forensics.capacity.block_pool import HEAD_FIRST, BlockPool
from forensics.capacity.simulated import OnEnd, Request, Server, Totals, chain

RESERVE_PROMPT = (0, 19, 0)
"""From this release on a prompt is admitted only if all of it fits the pool."""


@dataclass(slots=True)
class Simulation:
    """A server under traffic; `run` carries it on, `totals` counts from the last `reset`.

    Args:
        server: the server.
        on_end: what follows from a request that ends; nothing by default.
    """

    server: Server
    on_end: OnEnd | None = None
    time: float = 0.0
    totals: Totals = field(default_factory=Totals)
    pool: BlockPool = field(init=False)
    _waiting: deque[Request] = field(default_factory=deque)
    _running: dict[int, Request] = field(default_factory=dict)
    _prefilling: list[Request] = field(default_factory=list)
    _firsts: list[Request] = field(default_factory=list)
    _arrivals: list[tuple[float, int, Request]] = field(default_factory=list)
    _fills: list[tuple[int, int, int, Request]] = field(default_factory=list)
    _ends: list[tuple[int, int, int, Request]] = field(default_factory=list)
    _step: int = 0
    _seq: int = 0
    _order: int = 0
    _context: int = 0
    _blocked: bool = False

    def __post_init__(self) -> None:
        """Set up an empty pool."""
        self.pool = BlockPool(self.server.blocks, head_first=self.server.version >= HEAD_FIRST)

    def arrive(self, time: float, request: Request) -> None:
        """Add a request that arrives at a time not before now."""
        request.arrival = time
        self._order += 1
        heappush(self._arrivals, (time, self._order, request))

    def reset(self) -> None:
        """Begin to count anew; the server goes on as it is."""
        self.totals = Totals()

    def run(self, until: float) -> None:
        """Carry on until a time, or until nothing is left to do."""
        arrivals, waiting, running = self._arrivals, self._waiting, self._running
        while self.time < until:
            while arrivals and arrivals[0][0] <= self.time:
                if not waiting:
                    self._blocked = False
                waiting.append(heappop(arrivals)[2])
            if not running and not waiting:
                if not arrivals or arrivals[0][0] >= until:
                    self._pass(until - self.time, 0)
                    return
                self._pass(arrivals[0][0] - self.time, 0)
                continue
            self._schedule(until)

    def _schedule(self, until: float) -> None:
        preempted = False
        fills, step = self._fills, self._step
        while fills and fills[0][0] <= step:
            _, _, epoch, request = heappop(fills)
            if request.epoch == epoch:
                preempted |= self._grow(request)
        budget = self.server.max_num_batched_tokens - len(self._running) + len(self._prefilling)
        chunks = 0
        for request in list(self._prefilling):
            want = min(request.prompt + request.generated - request.computed, budget)
            # Those preempted for an earlier one in this very step have nothing computed any more.
            if not request.computed or want <= 0:
                continue
            got, took = self._chunk(request, want)
            preempted |= took
            budget -= got
            chunks += got
        if not preempted and not self._blocked and self._waiting:
            chunks += self._admit(budget)
        self._advance(chunks, until)

    def _grow(self, request: Request) -> bool:
        """Give a decoding request its next block; preempt for it when there is none."""
        took = False
        while self.pool.free < 1:
            took = True
            if self._preempt_last() is request:
                return True
        blocks = request.blocks
        if self.server.prefix_caching:
            # All blocks are full: that is why another one is needed.
            for place in range(request.registered, len(blocks)):
                self.pool.register(blocks[place], request.hashes[place])
            request.registered = len(blocks)
        blocks.append(self.pool.take())
        step = self._step + self.server.block_size
        if step <= request.finish_step:
            heappush(self._fills, (step, request.seq, request.epoch, request))
        return took

    def _chunk(self, request: Request, want: int) -> tuple[int, bool]:
        """Compute the next part of a prompt; returns its tokens, and whether any was preempted."""
        need = ceil((request.computed + want) / self.server.block_size) - len(request.blocks)
        took = False
        while self.pool.free < need:
            took = True
            if self._preempt_last() is request:
                return 0, True
        if need > 0:
            request.blocks += self.pool.allocate(need)
        self._computed(request, want)
        return want, took

    def _computed(self, request: Request, tokens: int) -> None:
        request.computed += tokens
        self._register(request, request.computed)
        # What was registered may be just what the first in the queue is short of.
        self._blocked = False
        if request.computed >= request.prompt + request.generated:
            self._prefilling.remove(request)
            self._start_decoding(request)

    def _start_decoding(self, request: Request) -> None:
        if request.first_token is None:
            self._firsts.append(request)
        request.base = request.computed
        request.base_step = self._step
        self._context += request.base
        request.finish_step = self._step + request.output - request.generated - 1
        heappush(self._ends, (request.finish_step, request.seq, request.epoch, request))
        self._plan_growth(request)

    def _plan_growth(self, request: Request) -> None:
        room = len(request.blocks) * self.server.block_size
        step = request.base_step + room - request.base + 1
        if step <= request.finish_step:
            heappush(self._fills, (step, request.seq, request.epoch, request))

    def _admit(self, budget: int) -> int:
        chunks = 0
        server, pool, size = self.server, self.pool, self.server.block_size
        while self._waiting and budget > 0:
            if len(self._running) >= server.max_num_seqs:
                self._blocked = True
                break
            request = self._waiting[0]
            if not request.hashes:
                request.hashes = chain(request, size)
            length = request.prompt + request.generated
            found = (
                pool.lookup(request.hashes, (length - 1) // size) if server.prefix_caching else []
            )
            hit = len(found) * size
            want = min(length - hit, budget)
            idle = pool.idle(found)
            whole = length if server.version >= RESERVE_PROMPT else hit + want
            if ceil(whole / size) - len(found) + idle > pool.free:
                self._blocked = True
                break
            self._waiting.popleft()
            if request.cached is None:
                request.cached = hit
                self.totals.queries += length
                self.totals.hits += hit
            pool.touch(found)
            request.blocks = found
            request.registered = len(found)
            request.computed = hit
            request.seq = self._seq = self._seq + 1
            self._running[request.seq] = request
            self._prefilling.append(request)
            request.blocks += pool.allocate(ceil((hit + want) / size) - len(found))
            self._computed(request, want)
            budget -= want
            chunks += want
        return chunks

    def _register(self, request: Request, tokens: int) -> None:
        if not self.server.prefix_caching:
            return
        full = tokens // self.server.block_size
        blocks, hashes, register = request.blocks, request.hashes, self.pool.register
        for place in range(request.registered, full):
            register(blocks[place], hashes[place])
        request.registered = max(request.registered, full)

    def _preempt_last(self) -> Request:
        _, request = self._running.popitem()
        if request in self._prefilling:
            self._prefilling.remove(request)
        else:
            # One token was sampled at the end of the prefill, one more in each step since.
            done = self._step - request.base_step
            self._context -= request.base + done
            request.generated += done
            self._register(request, request.base + done - 1)
        self._let_go(request)
        request.preempted += 1
        self.totals.preemptions += 1
        self._waiting.appendleft(request)
        return request

    def _let_go(self, request: Request) -> None:
        self.pool.release(request.blocks)
        request.blocks = []
        request.registered = 0
        request.computed = 0
        request.epoch += 1
        self._blocked = False

    def _advance(self, chunks: int, until: float) -> None:
        """Take this step, and all that follow in which nothing can happen."""
        cost = self.server.cost
        decoding = len(self._running) - len(self._prefilling)
        first = cost.fixed + cost.per_sequence * len(self._running)
        first += cost.per_context * self._context + cost.per_prompt * chunks
        steps = 1
        duration = first
        if not self._prefilling and (self._blocked or not self._waiting) and not chunks:
            steps, duration = self._stride(first, decoding, until)
        self._pass(duration, steps * decoding)
        self.totals.computed += chunks
        for request in self._firsts:
            request.first_token = self.time
        self._firsts.clear()
        self._context += steps * decoding
        self._step += steps
        self._finish()

    def _stride(self, first: float, decoding: int, until: float) -> tuple[int, float]:
        """Count the steps until the next fill, end or arrival, and the time they take."""
        limit = self._ends[0][0] - self._step + 1 if self._ends else 1
        if self._fills:
            limit = min(limit, self._fills[0][0] - self._step)
        steps = max(1, limit)
        growth = self.server.cost.per_context * decoding
        horizon = min(until, self._arrivals[0][0]) if self._arrivals else until
        room = horizon - self.time
        if steps * first + growth * steps * (steps - 1) / 2 > room > 0:
            # k first + growth k (k - 1) / 2 >= room: the step in which the time is reached.
            if growth > 0:
                half = first - growth / 2
                steps = ceil((-half + sqrt(half * half + 2 * growth * room)) / growth)
            else:
                steps = ceil(room / first)
            steps = max(1, min(steps, limit))
        return steps, steps * first + growth * steps * (steps - 1) / 2

    def _finish(self) -> None:
        ends, last = self._ends, self._step - 1
        while ends and ends[0][0] <= last:
            _, _, epoch, request = heappop(ends)
            if request.epoch != epoch:
                continue
            del self._running[request.seq]
            self._context -= request.base + self._step - request.base_step
            self._register(request, request.base + last - request.base_step)
            self._let_go(request)
            request.hashes = []
            request.end = self.time
            self.totals.finished += 1
            if self.on_end is not None:
                for time, follower in self.on_end(request, self.time):
                    self.arrive(max(time, self.time), follower)

    def _pass(self, seconds: float, generated: int) -> None:
        totals = self.totals
        totals.seconds += seconds
        totals.generated += generated
        totals.running_s += seconds * len(self._running)
        totals.waiting_s += seconds * len(self._waiting)
        totals.usage_s += seconds * (1 - self.pool.free / (self.server.blocks - 1))
        self.time += seconds


__all__ = ["OnEnd", "Request", "Server", "Simulation", "Totals"]
