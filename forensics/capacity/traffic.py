"""What to send to a simulated server: clients in closed loop, recorded clients, public traces.

All of it is deterministic for a seed. A piece of text is a number; equal numbers at equal places
share their blocks (`forensics.capacity.simulated.Segment`).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import log, sqrt
from random import Random

from forensics.capacity.reuse_model import Workload
from forensics.capacity.simulate import Simulation
from forensics.capacity.simulated import Request, Segment

MOONCAKE_BLOCK = 512
"""Tokens behind one `hash_ids` entry of a Mooncake trace."""
_UNIQUE = 1 << 40
"""Identities from here on are given to text that occurs once."""


@dataclass(slots=True)
class Chat:
    """Clients in closed loop: each holds one session, thinks, and comes back with its history.

    Turns of a session are geometric, think times exponential, lengths lognormal. A client whose
    session ends begins another at once, so the number of live clients stays as it is.

    Attributes:
        workload: lengths, turns, think time, shared prefixes.
        seed: of the random numbers.
    """

    workload: Workload
    seed: int = 1
    _random: Random = field(init=False)
    _next: int = _UNIQUE
    _sessions: dict[int, tuple[Segment, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Seed the random numbers."""
        self._random = Random(self.seed)

    def start(self, simulation: Simulation, clients: int, ramp_s: float) -> None:
        """Let clients arrive, evenly spread over a time."""
        simulation.on_end = self.follow
        for client in range(clients):
            self._begin(client)
            simulation.arrive(
                simulation.time + ramp_s * client / max(1, clients), self._turn(client)
            )

    def follow(self, request: Request, time: float) -> Iterable[tuple[float, Request]]:
        """Give the client's next turn, after thinking."""
        client = request.label
        goes_on = self._random.random() < 1 - 1 / self.workload.turns
        if goes_on:
            self._sessions[client] = (*request.segments, (request.answer, request.output))
        else:
            self._begin(client)
        think = self.workload.think_s
        pause = self._random.expovariate(1 / think) if think > 0 else 0.0
        return ((time + pause, self._turn(client)),)

    def _begin(self, client: int) -> None:
        shares = self.workload.popularity
        if not self.workload.shared:
            self._sessions[client] = ()
            return
        prefix = self._random.choices(range(len(shares)), shares)[0] if len(shares) > 1 else 0
        self._sessions[client] = ((prefix, round(self.workload.shared)),)

    def _turn(self, client: int) -> Request:
        load = self.workload
        fresh = self._length(load.fresh, load.fresh_cv)
        output = self._length(load.output, load.output_cv)
        self._next += 2
        segments = (*self._sessions[client], (self._next, fresh))
        return Request(segments, self._next + 1, output, client)

    def _length(self, mean: float, spread: float) -> int:
        if spread <= 0:
            return max(1, round(mean))
        width = log(1 + spread * spread)
        return max(1, round(self._random.lognormvariate(log(mean) - width / 2, sqrt(width))))


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as a load generator recorded it; times in seconds.

    Attributes:
        submit / end: when it was sent and answered.
        segments: its prompt as pieces of text.
        output: tokens of its answer.
        client: who sent it; None when clients are to be told from the times.
        step: the load level it belongs to.
    """

    submit: float
    end: float
    segments: tuple[Segment, ...]
    output: int
    client: int | None
    step: int


def replay(simulation: Simulation, records: Sequence[Recorded]) -> list[tuple[int, Request]]:
    """Let recorded clients send again what they sent, with the pauses they made.

    The next request is sent the recorded pause after the *simulated* end of the one before, so that
    the number of live clients is that of the recording whatever the server's speed. Where clients
    are not known, whoever is free first sends the next request of the recording.

    Returns:
        (load level, request) for each record, in order of sending.
    """
    ordered = sorted(range(len(records)), key=lambda place: (records[place].submit, place))
    requests = [
        Request(record.segments, _UNIQUE + place, record.output, place)
        for place, record in enumerate(records)
    ]
    begin = records[ordered[0]].submit if ordered else 0.0
    queues: dict[int | None, deque[tuple[float, int]]] = {}
    free: list[float] = []
    for place in ordered:
        record = records[place]
        queue = queues.setdefault(record.client, deque())
        if record.client is not None:
            pause = record.submit - records[queue[-1][1]].end if queue else None
        else:
            idle = free and free[0] <= record.submit
            pause = record.submit - heappop(free) if idle else None
            heappush(free, record.end)
        if pause is None:
            # The first of a client: sent when it was sent.
            simulation.arrive(simulation.time + record.submit - begin, requests[place])
        queue.append((-1.0 if pause is None else pause, place))

    pending = {
        client: deque(item for item in queue if item[0] >= 0) for client, queue in queues.items()
    }

    def follow(request: Request, time: float) -> Iterable[tuple[float, Request]]:
        queue = pending[records[request.label].client]
        if not queue:
            return ()
        pause, place = queue.popleft()
        return ((time + pause, requests[place]),)

    simulation.on_end = follow
    return [(records[place].step, requests[place]) for place in ordered]


def mooncake(
    rows: Iterable[dict[str, object]], scale: float = 1.0
) -> Iterator[tuple[float, Request]]:
    """Read a Mooncake trace: (arrival in seconds, request) for each row.

    Args:
        rows: parsed JSON lines with timestamp (ms), input_length, output_length, hash_ids.
        scale: stretches time: 10 lets a tenth of the rate arrive.
    """
    for place, row in enumerate(rows):
        length, ids = row["input_length"], row["hash_ids"]
        stamp, output = row["timestamp"], row["output_length"]
        if not isinstance(length, int) or not isinstance(ids, list):
            continue
        if not isinstance(stamp, int | float) or not isinstance(output, int):
            continue
        segments = tuple(
            (int(identity), min(MOONCAKE_BLOCK, length - at * MOONCAKE_BLOCK))
            for at, identity in enumerate(ids)
            if length > at * MOONCAKE_BLOCK
        )
        yield stamp / 1000 * scale, Request(segments, _UNIQUE + place, output, place)


def unique_lengths(
    rows: Iterable[tuple[float, int, int]], scale: float = 1.0
) -> Iterator[tuple[float, Request]]:
    """Turn (arrival in seconds, prompt, output) rows, as in the Azure traces, into requests."""
    for place, (stamp, prompt, output) in enumerate(rows):
        segments = ((_UNIQUE + 2 * place, max(1, prompt)),)
        yield stamp * scale, Request(segments, _UNIQUE + 2 * place + 1, output, place)
