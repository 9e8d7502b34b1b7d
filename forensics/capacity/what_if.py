"""A plan → what a range of batches would give, and what changes of the set-up would do to it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

from forensics.capacity.bounds import HORIZON_S, Reckoned
from forensics.capacity.plan import Plan, Wanted, ceiling_for
from forensics.capacity.reuse_model import load_point
from forensics.catalog.gpus import gpus

BATCHES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Settings people try; those past exhaustion by half are left out."""
LARGER = (
    "NVIDIA L40S",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H200",
    "AMD Instinct MI300X",
    "NVIDIA B200",
)
"""Cards of the table that are commonly rented, by memory and speed: candidates for a change."""
OTHERS_SHOWN = 2
HIGH_UTILIZATION = 0.95
"""Highest share of memory that public guides use without other processes on the card."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """What one running batch would give.

    Attributes:
        batch: running requests.
        clients: live clients behind it.
        hit_rate / usage: 0-1.
        residence_s: how long a released block survives.
        preemption_risk: probability of any exhaustion within an hour, 0-1.
        itl_s: inter-token latency.
        throughput_tok_s: generated tokens per second.
    """

    batch: int
    clients: float
    hit_rate: float
    usage: float
    residence_s: float
    preemption_risk: float
    itl_s: float
    throughput_tok_s: float


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """What one change would do: pool and limit with it; None where there is none."""

    change: str
    pool_tokens: int | None
    limit: float | None
    binding: str | None
    sessions: float | None


def batches(plan: Plan) -> tuple[BatchRow, ...]:
    """Work out a range of batches; empty where pool or step time are unknown."""
    if plan.pool is None or plan.cost is None or plan.workload is None:
        return ()
    most = next((bound.value for bound in plan.bounds if bound.name == "B_exh"), 0.0)
    safe = next(bound for bound in plan.bounds if bound.name == "B_safe")
    rows = []
    for batch in BATCHES:
        if batch > 1.5 * most:
            break
        point = load_point(plan.pool.tokens, plan.workload, plan.cost, float(batch))
        held = plan.workload.output * point.step_s
        rows.append(
            BatchRow(
                batch=batch,
                clients=point.clients,
                hit_rate=point.hit_rate,
                usage=point.usage,
                residence_s=point.residence_s,
                preemption_risk=_risk(safe, batch, held),
                itl_s=point.step_s,
                throughput_tok_s=point.throughput_tok_s,
            )
        )
    return tuple(rows)


def changes(wanted: Wanted, plan: Plan) -> tuple[ChangeRow, ...]:
    """Work out the changes that raise a ceiling, the present set-up first."""
    return (
        _row("as asked", plan),
        *(_row(name, ceiling_for(other)) for name, other in _variants(wanted, plan)),
    )


def _variants(wanted: Wanted, plan: Plan) -> Iterator[tuple[str, Wanted]]:
    if wanted.pool_tokens is not None:
        # A pool that was given would stay as it is whatever is changed.
        return
    if wanted.kv_dtype in (None, "auto", "bfloat16", "float16", "half"):
        yield "fp8 KV cache", replace(wanted, kv_dtype="fp8")
    more = wanted.tensor_parallel * 2
    yield f"tensor parallel {more}", replace(wanted, tensor_parallel=more)
    if (wanted.utilization or 0.0) < HIGH_UTILIZATION:
        yield (
            f"utilization {HIGH_UTILIZATION:g}",
            replace(wanted, utilization=HIGH_UTILIZATION),
        )
    memory = plan.gpu.cuda_gib if plan.gpu else 0.0
    larger = [name for name in LARGER if gpus()[name].cuda_gib > memory * 1.02]
    for name in larger[:OTHERS_SHOWN]:
        yield name, replace(wanted, gpu=name, memory_gib=None)


def _row(change: str, plan: Plan) -> ChangeRow:
    return ChangeRow(
        change=change,
        pool_tokens=plan.pool.tokens if plan.pool else None,
        limit=plan.limit.value if plan.limit else None,
        binding=plan.binding,
        sessions=plan.sessions.value if plan.sessions else None,
    )


def _risk(safe: Reckoned, batch: int, held_s: float) -> float:
    """Probability that the demand of a batch passes the pool in any population of an hour."""
    from statistics import NormalDist

    figures = {name: float(q.value) for name, q in safe.inputs.items()}
    spread = figures["s"] * sqrt(batch)
    room = figures["N"] - figures["S_live"] - batch * figures["m"]
    if spread <= 0:
        return 0.0 if room >= 0 else 1.0
    once = 1 - NormalDist().cdf(room / spread)
    populations = max(1.0, HORIZON_S / max(held_s, 1.0))
    return float(1 - (1 - once) ** populations)
