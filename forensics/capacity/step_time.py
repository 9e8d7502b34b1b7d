"""How long a decode step takes with B requests, and the batches that follow from it.

``t(B) = t0 + B * slope``, ``slope = c + d * context + b * P(1-h)/O``: reading the weights (fixed),
per-sequence work, reading the KV cache of each request, and the prompt tokens computed per
generated token. Throughput is ``B / t(B)``: half of its plateau at ``B_half = t0 / slope``, 90 % at
``9 * B_half``. A fit of measured (running, inter-token latency) pairs is preferred; the roofline of
the data sheet is the fallback.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.capacity.bounds import Interval, Quantity, Reckoned, corners
from forensics.capacity.demand import fit_line
from forensics.capacity.reuse_model import StepCost
from forensics.catalog.gpus import GpuSpec

BANDWIDTH_SHARE = 0.8
"""Achieved part of peak bandwidth in decode: 0.6-0.85 in public measurements."""
RATE_SHARE = 0.45
"""Achieved part of the dense FP16 rate in prefill: 0.35-0.55."""
OVERHEAD_S = 0.002
"""Scheduling, sampling and launch overhead of a step: 2-8 ms."""
ROOFLINE_ERROR = 0.3
"""Relative error of the roofline's slope and intercept: the width of the shares above."""
KNEE = 9.0
"""9 x B_half has 90 % of the throughput plateau."""
FIT_SPREAD = 1.5
"""Running has to vary by this factor for a slope to mean anything."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a decode step: ``fixed + batch x slope``, each with its interval.

    Attributes:
        fixed: t0, s.
        slope: s per running request.
        source: "measured" or "roofline".
        steps: the arithmetic.
    """

    fixed: Interval
    slope: Interval
    source: str
    steps: tuple[str, ...] = ()

    def at(self, batch: float) -> float:
        """Return the step time of a batch."""
        return self.fixed.value + batch * self.slope.value

    def throughput(self, batch: float) -> float:
        """Return generated tokens per second of a batch."""
        return batch / self.at(batch)


@dataclass(frozen=True, slots=True)
class Machine:
    """One GPU of a tensor-parallel group, and the model it runs.

    Attributes:
        gpu: from the table.
        weight_bytes: weights read in a step, over all GPUs.
        params: parameters a token passes.
        kv_bytes_per_token: of one GPU.
        tensor_parallel: GPUs that share the work.
    """

    gpu: GpuSpec
    weight_bytes: float
    params: float
    kv_bytes_per_token: float
    tensor_parallel: int = 1

    @property
    def cost(self) -> StepCost:
        """Seconds of a step by its parts, from the data sheet."""
        bandwidth = self.gpu.bandwidth_gb_s * 1e9 * BANDWIDTH_SHARE
        rate = self.gpu.fp16_tflops * 1e12 * RATE_SHARE * self.tensor_parallel
        return StepCost(
            fixed=OVERHEAD_S + self.weight_bytes / self.tensor_parallel / bandwidth,
            per_context=self.kv_bytes_per_token / bandwidth,
            per_prompt=2 * self.params / rate,
        )


def roofline(machine: Machine, context: float, computed_per_output: float) -> StepTime:
    """Reckon the step time from the data sheet.

    Args:
        machine: GPU and model.
        context: mean tokens a running request attends to.
        computed_per_output: prompt tokens computed per generated token, P(1-h)/O.
    """
    cost, gpu = machine.cost, machine.gpu
    slope = cost.per_context * context + cost.per_prompt * computed_per_output
    bandwidth = gpu.bandwidth_gb_s * BANDWIDTH_SHARE
    rate = gpu.fp16_tflops * RATE_SHARE * machine.tensor_parallel
    steps = (
        f"t0 = {OVERHEAD_S * 1e3:g} ms"
        f" + {machine.weight_bytes / machine.tensor_parallel / 1e9:.2f} GB weights"
        f" / ({gpu.bandwidth_gb_s:,.0f} GB/s x {BANDWIDTH_SHARE:g}) = {cost.fixed * 1e3:.1f} ms",
        f"slope = {machine.kv_bytes_per_token:,.0f} B x {context:,.0f} / ({bandwidth:,.0f} GB/s)"
        f" + 2 x {machine.params / 1e9:.3g}e9 / ({rate:,.0f} TFLOP/s) x {computed_per_output:.2f}"
        f" = {slope * 1e3:.3f} ms per request",
    )
    return StepTime(
        Interval.within(cost.fixed, ROOFLINE_ERROR),
        Interval.within(slope, ROOFLINE_ERROR),
        "roofline",
        steps,
    )


def fitted(running: Sequence[float], latency_s: Sequence[float]) -> StepTime | None:
    """Fit the step time to measured pairs; None when they cannot carry a line.

    Needs eight pairs, running varied by 1.5x, and both a positive intercept and a slope of at
    least two standard errors.
    """
    if len(running) < 8 or min(running) <= 0 or max(running) < FIT_SPREAD * min(running):
        return None
    line = fit_line(running, latency_s)
    if line is None or line.intercept <= 0 or line.slope <= 2 * line.slope_error:
        return None
    fixed = Interval(
        line.intercept,
        max(line.intercept * 0.2, line.intercept - 2 * line.intercept_error),
        line.intercept + 2 * line.intercept_error,
    )
    slope = Interval(
        line.slope,
        max(line.slope * 0.2, line.slope - 2 * line.slope_error),
        line.slope + 2 * line.slope_error,
    )
    step = (
        f"fit over {line.points} scrapes: t(B) = {line.intercept * 1e3:.1f} ms"
        f" + {line.slope * 1e3:.3f} ms x B"
    )
    return StepTime(fixed, slope, "measured", (step,))


def slo_bound(step: StepTime, target_s: float, target_source: str) -> Reckoned:
    """Return B_slo: the batch whose step takes as long as the inter-token target allows."""

    def batch(fixed: float, slope: float) -> float:
        return max(0.0, target_s - fixed) / slope

    value = batch(step.fixed.value, step.slope.value)
    low, high = corners(batch, step.fixed, step.slope)
    return Reckoned(
        "B_slo",
        value,
        low,
        high,
        "(t_slo - t0) / slope",
        _inputs(step) | {"t_slo": Quantity(target_s, "s", target_source)},
        (
            *step.steps,
            f"({target_s * 1e3:g} ms - {step.fixed.value * 1e3:.1f} ms)"
            f" / {step.slope.value * 1e3:.3f} ms = {value:,.0f}",
        ),
    )


def knee_bound(step: StepTime) -> Reckoned:
    """Return B_90 = 9 B_half: above it latency is bought for at most a tenth of throughput."""

    def knee(fixed: float, slope: float) -> float:
        return KNEE * fixed / slope

    value = knee(step.fixed.value, step.slope.value)
    low, high = corners(knee, step.fixed, step.slope)
    half = value / KNEE
    return Reckoned(
        "B_90",
        value,
        low,
        high,
        "9 t0 / slope",
        _inputs(step),
        (
            *step.steps,
            f"B_half = {step.fixed.value * 1e3:.1f} ms / {step.slope.value * 1e3:.3f} ms"
            f" = {half:,.0f}; 9 x {half:,.0f} = {value:,.0f}"
            f" (plateau {1 / step.slope.value:,.0f} tok/s)",
        ),
    )


def _inputs(step: StepTime) -> dict[str, Quantity]:
    return {
        "t0": Quantity(step.fixed.value, "s", step.source),
        "slope": Quantity(step.slope.value, "s/request", step.source),
    }
