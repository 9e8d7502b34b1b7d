"""The diary's records: an engine's life in epochs, an epoch being one process from start to end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forensics.evidence import Place


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A vLLM release, ordered; suffixes such as ``rc1`` or ``+cu129`` are kept in `text` only."""

    major: int
    minor: int
    patch: int
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> "Version | None":
        """Read ``0.11.2``, ``v0.8.5.post1`` or ``0.27``; None when it is no release number."""
        parts = text.strip().removeprefix("v").split("+")[0].split(".")
        numbers: list[int] = []
        for part in parts[:3]:
            digits = ""
            for char in part:
                if not (char.isascii() and char.isdigit()):
                    break
                digits += char
            if not digits or len(digits) > 6:
                break
            numbers.append(int(digits))
            if len(digits) != len(part):
                break
        if len(numbers) < 2:
            return None
        return cls(numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else 0, text.strip())

    def __str__(self) -> str:
        return self.text or f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class Stated:
    """A value somebody stated, as text, and where; `place` is None when the operator said it."""

    value: str
    place: Place | None
    how: str = "stated"


@dataclass(frozen=True, slots=True)
class Gpu:
    """What is known of the accelerator.

    Attributes:
        name: catalogue name when it is certain; None otherwise.
        candidates: catalogue names that fit what was seen (several when only memory is known).
        memory_bytes: total memory as CUDA reports it, when seen.
        source: what it was learnt from, for a reader ("operator", "DCGM", "memory line", …).
        place: where.
    """

    name: str | None = None
    candidates: tuple[str, ...] = ()
    memory_bytes: int | None = None
    source: str | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV pool as the server stated it; blocks of `block_size` tokens.

    `tokens` is what one engine can hold (smallest rank). For hybrid models from 0.21 on the logged
    token figure is ``int(max_concurrency x max_model_len)`` and is not blocks x block size.
    """

    tokens: int | None = None
    blocks: int | None = None
    block_size: int | None = None
    max_concurrency: float | None = None
    source: str | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """One process of one engine.

    Attributes:
        start / end: UTC seconds; None when the evidence begins (ends) inside the epoch.
        version: of vLLM; None when never stated.
        generation: "V0", "V1" or None.
        model: name as stated.
        flags: what was set explicitly, by dest name (max_num_seqs, enable_prefix_caching, …).
        config: the engine config dump, by key.
        memory: memory lines in GiB by name (total_gib, weights_gib, activation_gib, kv_gib, …).
        max_num_seqs: effective value; `max_num_seqs_stated` tells stated from a release's default.
        prefix_caching: whether it was on; None when unknown.
    """

    start: float | None
    end: float | None
    version: Version | None = None
    generation: str | None = None
    model: Stated | None = None
    flags: Mapping[str, Stated] = field(default_factory=dict)
    config: Mapping[str, Stated] = field(default_factory=dict)
    memory: Mapping[str, Stated] = field(default_factory=dict)
    gpu: Gpu = field(default_factory=Gpu)
    pool: KvPool = field(default_factory=KvPool)
    max_num_seqs: int | None = None
    max_num_seqs_stated: Stated | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    prefix_caching: bool | None = None
    prefix_caching_stated: Stated | None = None

    def flag(self, name: str) -> str | None:
        """Give an explicit setting by dest name, or None."""
        stated = self.flags.get(name)
        return stated.value if stated else None

    def before(self, major: int, minor: int, patch: int = 0) -> bool | None:
        """Tell whether this epoch ran a release older than the given one; None when unknown."""
        return None if self.version is None else self.version < Version(major, minor, patch)


@dataclass(frozen=True, slots=True)
class EngineDiary:
    """The life of one engine (one scheduler, one pool): its epochs in order of time."""

    engine: str
    instance: str | None
    rank: str | None
    epochs: tuple[Epoch, ...]

    def at(self, time: float) -> Epoch:
        """Give the epoch that covers a time; the nearest one when none does."""
        for epoch in reversed(self.epochs):
            if epoch.start is None or epoch.start <= time:
                return epoch
        return self.epochs[0]
