"""What a ceiling is asked for, and the traffic that means."""

from dataclasses import dataclass

from forensics.capacity.reuse_model import Workload
from forensics.catalog.messages import Message
from forensics.catalog.model_geometry import ModelGeometry

OUTPUT_SHARE = 0.25
"""Output taken out of the context when none is given: a guess, marked as assumed in the answer."""

Release = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a ceiling is asked for.

    Attributes:
        gpu: name in any spelling; None when the pool is given.
        model: name in any spelling, or its geometry.
        context: prompt tokens of a typical request; all its tokens when `output` is None.
        output: generated tokens of a typical request.
        shared_prefix: tokens at the start of every prompt that requests have in common.
        prefixes: how many such prefixes the traffic has, equally popular.
        turns / think_s: mean turns of a session and seconds between them; None when unknown.
        max_model_len: when given, at most this is taken as context.
        kv_dtype / dtype: as in the flags of the same name.
        tensor_parallel / pipeline_parallel: as in the flags.
        utilization: `--gpu-memory-utilization`; the release's default when None.
        version: release; the newest rules when None.
        block_size: tokens of a block.
        slo_itl_s: target of the inter-token latency.
        slo_ttft_s: target of the time to first token.
        pool_tokens: size of the pool as the server logs it, when known.
        memory_gib: total memory of one GPU as the driver reports it; the table's when None.
        keep_generations: how many generations of the shared prefix the field's formula keeps.
        reserve_gib: GiB the field's formula keeps; wins over `keep_generations`.
        max_num_batched_tokens: step budget, when known.
        draft_layers: attention layers a speculative draft adds to the cache.
    """

    gpu: str | None = None
    model: str | ModelGeometry | None = None
    context: float = 2048.0
    output: float | None = None
    shared_prefix: float | None = None
    prefixes: int = 1
    turns: float | None = None
    think_s: float | None = None
    max_model_len: int | None = None
    kv_dtype: str | None = None
    dtype: str | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    utilization: float | None = None
    version: Release | None = None
    block_size: int = 16
    slo_itl_s: float | None = None
    slo_ttft_s: float | None = None
    pool_tokens: int | None = None
    memory_gib: float | None = None
    keep_generations: int = 1
    reserve_gib: float | None = None
    max_num_batched_tokens: int | None = None
    draft_layers: int = 0


def workload_of(wanted: Wanted, notes: list[Message]) -> Workload:
    """Give the traffic that was asked for; what had to be assumed is added to the notes."""
    context = wanted.context
    if wanted.max_model_len:
        context = min(context, float(wanted.max_model_len))
    output = wanted.output
    if output is None:
        output = context * OUTPUT_SHARE
        context -= output
        values = {"output": output, "context": context + output}
        notes.append(Message("ceiling.note.assumed_output", values))
    if wanted.shared_prefix is None:
        notes.append(Message("ceiling.note.assumed_sharing", {}))
    shared = min(wanted.shared_prefix or 0.0, max(0.0, context - 1))
    private = context - shared
    turns = max(1.0, wanted.turns or 1.0)
    fresh = (private - (turns - 1) * output) / turns
    if fresh < 1:
        # The history asked for is longer than the prompt: as many turns as fit.
        asked, turns = turns, max(1.0, (private + output) / (1 + output))
        if turns < asked:
            values = {"asked": asked, "turns": turns, "context": context}
            notes.append(Message("ceiling.note.turns_do_not_fit", values))
        fresh = (private - (turns - 1) * output) / turns
    count = max(1, min(wanted.prefixes, 100_000))
    return Workload(
        shared=shared,
        fresh=fresh,
        output=max(1.0, output),
        turns=turns,
        think_s=wanted.think_s or 0.0,
        popularity=tuple(1 / count for _ in range(count)),
    )
