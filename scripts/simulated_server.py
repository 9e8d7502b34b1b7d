"""A small model of a vLLM server: block-exact prefix cache, admission, preemption, closed loop.

It exists to make labelled falls of the hit rate. Time goes in steps of a quarter second; within
one, every running request gets the tokens that batch size and prefills leave it. Blocks hold 64
tokens. Freed blocks keep their hash and wait in one queue, oldest first; new blocks come from its
head; a hit takes a block out of it again. What a cache without limit would have hit is counted
beside it.
"""

import heapq
import math
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, field

BLOCK = 64
STEP_S = 0.25


@dataclass(frozen=True)
class Phase:
    """The load in one phase.

    Attributes:
        users: clients in closed loop, each with one session at a time.
        think_s: mean pause between the turns of a session (exponential).
        turns: mean turns of a session (geometric).
        prefixes: how many shared prefixes exist; alpha: Zipf exponent of their popularity.
        shared / private / output: mean tokens of the shared prefix, of each turn's own text and of
            the answer; `spread` their coefficient of variation.
        unique: share of requests whose prompt begins with something never seen.
        batch: further clients that send prompts of `batch_prompt` tokens seen once, without pause.
    """

    users: int
    think_s: float
    turns: float
    prefixes: int
    alpha: float
    shared: int
    private: int
    output: int
    spread: float = 0.5
    unique: float = 0.0
    batch: int = 0
    batch_prompt: int = 2000


@dataclass(frozen=True)
class Server:
    """Pool tokens, seats, and speed: a step takes base_s + per_seq_s x running seconds."""

    pool: int
    seats: int
    base_s: float
    per_seq_s: float
    prefill_tps: float


@dataclass
class Sample:
    """What one scrape adds."""

    prompt: int = 0
    cached: int = 0
    ideal: int = 0
    generated: int = 0
    finished: int = 0
    first_tokens: int = 0
    preemptions: int = 0
    running: int = 0
    waiting: int = 0
    usage: float = 0.0
    prompts: list[int] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Arrival:
    """What a log of requests says of one: when it came, its full blocks, its prompt tokens."""

    at: float
    hashes: tuple[int, ...]
    prompt: int


@dataclass(eq=False)
class _Client:
    one_off: bool
    history: list[int] = field(default_factory=list)
    tail: int = 0
    prefix: int = -1


@dataclass(eq=False)
class _Request:
    client: _Client
    hashes: list[int]
    prompt: int
    output: int
    left: float
    prefill: float = 0.0
    held: list[int] = field(default_factory=list)
    tokens: int = 0
    resumed: bool = False
    private: int = 0
    arrived: float = 0.0


class Simulation:
    """One run; `run` gives a sample per scrape, `arrivals` are all requests."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.blocks = server.pool // BLOCK
        self.blank = self.blocks
        self.queue: OrderedDict[int, None] = OrderedDict()
        self.pinned: dict[int, int] = {}
        self.seen: set[int] = set()
        self.running: list[_Request] = []
        self.waiting: deque[_Request] = deque()
        self.wakes: list[tuple[float, int, _Client]] = []
        self.next_hash = 1
        self.chains: dict[tuple[int, int], int] = {}
        self.order = 0
        self.clients = [0, 0]
        self.arrivals: list[Arrival] = []

    def run(self, phases: list[tuple[float, Phase]], scrape_s: float) -> list[Sample]:
        """Run phases given as (end in seconds, load), scraped at a fixed interval."""
        samples: list[Sample] = []
        now, sample, due = 0.0, Sample(), scrape_s
        for end, phase in phases:
            self.phase = phase
            self._weights()
            while now < end:
                self._arrivals(now)
                self._admit(sample)
                self._advance(now, sample)
                now += STEP_S
                if now >= due:
                    sample.running, sample.waiting = len(self.running), len(self.waiting)
                    sample.usage = len(self.pinned) / self.blocks
                    samples.append(sample)
                    sample, due = Sample(), due + scrape_s
        return samples

    def _weights(self) -> None:
        ranks = range(1, self.phase.prefixes + 1)
        self.weights = [1.0 / rank**self.phase.alpha for rank in ranks]
        self.names = list(range(self.phase.prefixes))

    def _hash(self) -> int:
        self.next_hash += 1
        return self.next_hash

    def _length(self, mean: float) -> int:
        spread = self.phase.spread
        sigma = math.sqrt(math.log(1 + spread * spread))
        return max(8, int(mean * math.exp(self.random.gauss(-sigma * sigma / 2, sigma))))

    def _arrivals(self, now: float) -> None:
        for kind, wanted in ((0, self.phase.users), (1, self.phase.batch)):
            while self.clients[kind] < wanted:
                self.clients[kind] += 1
                pause = self.random.random() * (self.phase.think_s if kind == 0 else 1.0)
                self._wake(now + pause, _Client(bool(kind)))
        while self.wakes and self.wakes[0][0] <= now:
            client = heapq.heappop(self.wakes)[2]
            kind = int(client.one_off)
            wanted = self.phase.batch if client.one_off else self.phase.users
            if self.clients[kind] > wanted:
                self.clients[kind] -= 1
                continue
            request = self._request(client, now)
            self.waiting.append(request)
            self.arrivals.append(Arrival(now, tuple(request.hashes), request.prompt))

    def _wake(self, at: float, client: _Client) -> None:
        self.order += 1
        heapq.heappush(self.wakes, (at, self.order, client))

    def _request(self, client: _Client, now: float) -> _Request:
        phase = self.phase
        if client.one_off:
            length = self._length(phase.batch_prompt)
            hashes = [self._hash() for _ in range(length // BLOCK)]
            return _Request(client, hashes, length, self._length(phase.output), 0.0, arrived=now)
        if not client.history:
            client.prefix = self.random.choices(self.names, self.weights)[0]
            client.tail = 0
            if self.random.random() < phase.unique:
                client.prefix = -1
            client.history = self._shared(client.prefix)
        own = self._length(phase.private) + client.tail
        hashes = client.history + [self._hash() for _ in range(own // BLOCK)]
        length = len(client.history) * BLOCK + own
        return _Request(client, hashes, length, self._length(phase.output), 0.0, arrived=now)

    def _shared(self, prefix: int) -> list[int]:
        count = self.phase.shared // BLOCK
        if prefix < 0:
            return [self._hash() for _ in range(count)]
        found = []
        for index in range(count):
            key = (prefix, index)
            if key not in self.chains:
                self.chains[key] = self._hash()
            found.append(self.chains[key])
        return found

    def _take(self) -> bool:
        if self.blank:
            self.blank -= 1
            return True
        if self.queue:
            self.queue.popitem(last=False)
            return True
        return False

    def _admit(self, sample: Sample) -> None:
        while self.waiting and len(self.running) < self.server.seats:
            request = self.waiting[0]
            hits = 0
            for value in request.hashes:
                if value not in self.pinned and value not in self.queue:
                    break
                hits += 1
            idle = sum(value in self.queue for value in request.hashes[:hits])
            whole = request.tokens if request.resumed else request.prompt
            need = math.ceil(whole / BLOCK) - hits
            if need > self.blank + len(self.queue) - idle:
                if not self.running:
                    self.waiting.popleft()  # can never fit
                    self._done(request, 0.0)
                    continue
                return
            self.waiting.popleft()
            self._start(request, hits, whole, sample)

    def _start(self, request: _Request, hits: int, whole: int, sample: Sample) -> None:
        for value in request.hashes[:hits]:
            self.queue.pop(value, None)
            self.pinned[value] = self.pinned.get(value, 0) + 1
        request.held = list(request.hashes[:hits])
        fresh = math.ceil(whole / BLOCK) - hits
        for index in range(fresh):
            self._take()
            at = hits + index
            value = request.hashes[at] if at < len(request.hashes) else self._hash()
            if value in self.pinned:  # written by somebody admitted meanwhile: an own copy
                value = self._hash()
            self.queue.pop(value, None)
            self.pinned[value] = 1
            request.held.append(value)
        cached = min(hits * BLOCK, whole - 1)
        request.prefill = whole - cached
        if not request.resumed:
            ideal = 0
            for value in request.hashes:
                if value not in self.seen:
                    break
                ideal += 1
            self.seen.update(request.hashes)
            sample.prompt += whole
            sample.cached += cached
            sample.ideal += min(ideal * BLOCK, whole - 1)
            sample.prompts.append(whole)
            sample.computed.append(whole - cached)
            request.tokens = whole
            request.left = float(request.output)
        self.running.append(request)

    def _advance(self, now: float, sample: Sample) -> None:
        budget = self.server.prefill_tps * STEP_S
        spent = 0.0
        for request in self.running:
            if request.prefill > 0 and spent < budget:
                part = min(request.prefill, budget - spent)
                request.prefill -= part
                spent += part
                if request.prefill <= 0 and not request.resumed:
                    sample.first_tokens += 1
        decoding = [request for request in self.running if request.prefill <= 0]
        step = self.server.base_s + self.server.per_seq_s * len(decoding)
        rate = STEP_S * max(0.1, 1.0 - 0.7 * spent / budget) / step
        for request in decoding:
            if request not in self.running:
                continue  # preempted meanwhile
            grown = min(rate, request.left)
            before = request.tokens
            request.left -= grown
            request.tokens = before + max(1, round(grown)) if grown > 0 else before
            sample.generated += request.tokens - before
            while len(request.held) < math.ceil(request.tokens / BLOCK):
                if self._take():
                    value = self._hash()
                    self.pinned[value] = 1
                    request.held.append(value)
                    continue
                victim = self.running[-1]
                self._release(victim)
                victim.resumed, victim.prefill = True, 0.0
                victim.hashes = victim.hashes[:]
                self.running.remove(victim)
                self.waiting.appendleft(victim)
                sample.preemptions += 1
                if victim is request:
                    break
            if request in self.running and request.left <= 0:
                self.running.remove(request)
                sample.finished += 1
                self._done(request, now)

    def _release(self, request: _Request) -> None:
        for value in reversed(request.held):
            count = self.pinned[value] - 1
            if count:
                self.pinned[value] = count
            else:
                del self.pinned[value]
                self.queue[value] = None
        if request.held:
            full = request.tokens // BLOCK
            request.hashes = request.held[:full] if len(request.held) >= full else request.hashes
        request.held = []

    def _done(self, request: _Request, now: float) -> None:
        held = list(request.held)
        self._release(request)
        client = request.client
        if client.one_off:
            client.history = []
            self._wake(now + 0.5 * self.random.random(), client)
            return
        if self.random.random() < 1.0 / max(1.0, self.phase.turns):
            client.history = []
        else:
            client.history = held[: request.tokens // BLOCK]
            client.tail = request.tokens % BLOCK
            self.seen.update(client.history)
        self._wake(now + self.random.expovariate(1.0 / self.phase.think_s), client)
