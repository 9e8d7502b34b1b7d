"""What of a model decides the size of its KV cache, and what a quantisation name says."""

import re
from dataclasses import dataclass

FOUR_BIT = re.compile(r"awq|gptq(?!.*int8)|int4|4bit|w4a16|nvfp4|mxfp4|fp4")
EIGHT_BIT = re.compile(r"fp8|int8|8bit|w8a8|w8a16")
FOUR_BIT_BYTES = 0.65
"""Bytes per parameter of 4-bit checkpoints: scales, and embeddings left in 16 bits (AWQ and GPTQ
repositories of 7-70B models on the hub lie at 0.56-0.73)."""
EIGHT_BIT_BYTES = 1.1
"""The same for 8-bit checkpoints (1.03-1.13)."""


@dataclass(frozen=True, slots=True)
class ModelGeometry:
    """What of a model decides the size of its KV cache and the time of a step.

    Attributes:
        name: as the table or the configuration gives it.
        layers: hidden layers, all kinds.
        heads / kv_heads: attention and key/value heads of a layer, before tensor parallelism.
        head_dim / v_head_dim: elements of a key and of a value head.
        window / window_layers: sliding window in tokens, and how many layers have it.
        latent: elements of an MLA entry per token and layer; 0 for other models.
        linear_layers: Mamba or linear-attention layers, whose state does not grow with length.
        params / active_params: parameters, and those one token passes.
        bytes_per_param: of the checkpoint as it is loaded.
        source: where the geometry is from, for a reader.
    """

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: int = 0
    window_layers: int = 0
    latent: int = 0
    linear_layers: int = 0
    params: float = 0.0
    active_params: float = 0.0
    bytes_per_param: float = 2.0
    source: str = "catalogue"

    @property
    def full_layers(self) -> int:
        """Layers whose cache grows with the whole length."""
        return self.layers - self.window_layers - self.linear_layers

    @property
    def kind(self) -> str:
        """MHA, GQA, MQA, MLA, sliding (window in some or all layers) or hybrid (with states)."""
        if self.linear_layers:
            return "hybrid"
        if self.window_layers:
            return "sliding"
        if self.latent:
            return "MLA"
        if self.kv_heads == 1:
            return "MQA"
        return "MHA" if self.kv_heads == self.heads else "GQA"

    @property
    def weight_bytes(self) -> float:
        """Bytes of the weights over all GPUs."""
        return self.params * self.bytes_per_param


def quantised_bytes(text: str) -> float | None:
    """Return bytes per parameter a name or quantisation method tells; None when it tells none."""
    if FOUR_BIT.search(text.lower()):
        return FOUR_BIT_BYTES
    return EIGHT_BIT_BYTES if EIGHT_BIT.search(text.lower()) else None
