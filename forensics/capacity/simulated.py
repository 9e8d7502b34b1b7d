"""What a simulation takes and gives: the server, requests as pieces of text, and sums."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from forensics.capacity.reuse_model import StepCost

Segment = tuple[int, int]
"""A piece of text: its identity and its length in tokens. Equal pieces at equal places share."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server to replay.

    Attributes:
        blocks: of the pool, null block included.
        block_size: tokens of a block.
        max_num_seqs: seats.
        max_num_batched_tokens: step budget.
        cost: of a step.
        version: release whose rules apply.
        prefix_caching: whether blocks are shared and kept.
    """

    blocks: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    cost: StepCost
    version: tuple[int, int, int] = (0, 33, 0)
    prefix_caching: bool = True


class Request:
    """One request and what became of it.

    Attributes:
        segments: the prompt, as pieces of text.
        answer: identity of the answer as a piece of text.
        output: tokens of the answer.
        arrival / first_token / end: seconds; None until it happened.
        cached: prompt tokens found in the cache when it was first admitted.
        preempted: how often it was preempted.
        label: for the caller.
    """

    __slots__ = (
        "answer",
        "arrival",
        "base",
        "base_step",
        "blocks",
        "cached",
        "computed",
        "end",
        "epoch",
        "finish_step",
        "first_token",
        "generated",
        "hashes",
        "label",
        "output",
        "preempted",
        "prompt",
        "registered",
        "segments",
        "seq",
    )

    def __init__(
        self, segments: tuple[Segment, ...], answer: int, output: int, label: int = 0
    ) -> None:
        """Describe a request that has not arrived yet."""
        self.segments = segments
        self.answer = answer
        self.output = max(1, output)
        self.label = label
        self.prompt = sum(length for _, length in segments)
        self.arrival = 0.0
        self.first_token: float | None = None
        self.end: float | None = None
        self.cached: int | None = None
        self.preempted = 0
        self.blocks: list[int] = []
        self.hashes: list[int] = []
        self.registered = 0
        self.computed = 0
        self.generated = 0
        self.base = 0
        self.base_step = 0
        self.finish_step = 0
        self.seq = 0
        self.epoch = 0


OnEnd = Callable[[Request, float], Iterable[tuple[float, Request]]]
"""Called when a request ends; gives the requests that follow from it, with their arrival times."""


@dataclass(slots=True)
class Totals:
    """Sums over the measured time.

    Attributes:
        seconds: measured.
        queries / hits: prompt tokens looked up and found, each admitted request once.
        computed / generated: prompt tokens computed (again after preemption) and tokens generated.
        finished / preemptions: counts.
        running_s / waiting_s / usage_s: integrals over time.
    """

    seconds: float = 0.0
    queries: int = 0
    hits: int = 0
    computed: int = 0
    generated: int = 0
    finished: int = 0
    preemptions: int = 0
    running_s: float = 0.0
    waiting_s: float = 0.0
    usage_s: float = 0.0

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens found; None without a lookup."""
        return self.hits / self.queries if self.queries else None

    def mean(self, integral: float) -> float:
        """Turn an integral into a mean over the time."""
        return integral / self.seconds if self.seconds else 0.0


def chain(request: Request, block_size: int) -> list[int]:
    """Return the hash of each full block of prompt and answer, each over all before it."""
    found: list[int] = []
    value = 0
    filled = 0
    for identity, length in (*request.segments, (request.answer, request.output)):
        start = 0
        if filled:
            # Fill up the block in which the piece before ended.
            start = min(length, block_size - filled)
            value = hash((value, identity, 0, start))
            filled += start
            if filled < block_size:
                continue
            found.append(value)
            filled = 0
        whole = length - (length - start) % block_size
        for place in range(start, whole, block_size):
            value = hash((value, identity, place, place + block_size))
            found.append(value)
        if whole < length:
            value = hash((value, identity, whole, length))
            filled = length - whole
    return found
