"""Model geometry → bytes of KV cache per token and per block, on one GPU.

vLLM stores `2 x layers x KV heads x head size x bytes` for each token, on every rank its own KV
heads: ``max(1, kv_heads // tensor_parallel_size)``, so that heads are *replicated* once there are
more ranks than heads. MLA stores one latent vector per layer on every rank. Sliding-window layers
have their own groups of blocks in the hybrid manager of V1 (0.9.1+): there a block belongs to one
group and a request's need is not linear in its length (``v1/core/kv_cache_utils.py``).
Mamba and linear-attention layers keep one state per request, and the attention block is raised
until it is as large as that state: not computed here, the engine's own figures have to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from forensics.catalog.messages import Message
from forensics.catalog.model_geometry import ModelGeometry

HYBRID_MANAGER = (0, 9, 1)
"""First release that stores sliding-window layers apart from full ones."""
MLA_LATENT = (0, 7, 1)
"""First release that stores MLA models as latents; before, as full multi-head attention."""
FP8_DS_MLA_BYTES = 656
"""One `fp8_ds_mla` entry: 512 fp8 values, 4 scales, 64 rope values in 16 bits (0.11.0+)."""

_BYTES: Mapping[str, float] = {
    "auto": 2.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "float": 4.0,
    "float32": 4.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "fp8_inc": 1.0,
    "int8_per_token_head": 1.0,
    "fp8_per_token_head": 1.0,
    "int4_per_token_head": 0.5,
    # 4-bit values with one fp8 scale per 16 of them.
    "nvfp4": 0.5625,
}
_SCALED = frozenset(("int8_per_token_head", "fp8_per_token_head", "int4_per_token_head"))


@dataclass(frozen=True, slots=True)
class KvLayout:
    """How one GPU stores the cache.

    Attributes:
        bytes_per_token: on one GPU, over all groups, while no window is full.
        block_size: tokens of a block.
        bytes_per_block: of one block of one group.
        full_groups / window_groups: groups of layers that draw from the pool; 1 and 0 for a model
            whose layers are all alike.
        window: tokens of the sliding window; 0 without.
        heads_per_rank: KV heads stored on one GPU.
        replicated: whether ranks hold copies of the same heads (or of the MLA latent).
        formula: the arithmetic, with numbers.
    """

    bytes_per_token: float
    block_size: int
    bytes_per_block: float
    full_groups: int
    window_groups: int
    window: int
    heads_per_rank: int
    replicated: bool
    formula: str

    def blocks_for(self, tokens: float, lookahead: int = 0) -> int:
        """Blocks a request of that many tokens holds while it decodes."""
        full = ceil((tokens + lookahead) / self.block_size)
        if not self.window_groups:
            return full * self.full_groups
        slid = min(full, ceil(self.window / self.block_size) + 1)
        return full * self.full_groups + slid * self.window_groups

    def equivalent_tokens(self, tokens: float) -> float:
        """Tokens of the pool, as it is counted in tokens, that a request of that many takes.

        Less than its length once windows are full; the same for models of one group.
        """
        if self.linear:
            return tokens
        groups = self.full_groups + self.window_groups
        return self.blocks_for(tokens) * self.block_size / groups

    @property
    def linear(self) -> bool:
        """Whether tokens of the pool are simply blocks x block size."""
        return self.window_groups == 0


def kv_element_bytes(kv_dtype: str | None, dtype: str | None = None) -> float | None:
    """Return bytes of one cached element; None for a type this product does not know.

    Args:
        kv_dtype: `--kv-cache-dtype`; None or "auto" follows the model's `dtype`.
        dtype: `--dtype`, as a flag or as PyTorch prints it.
    """
    plain = (kv_dtype or "auto").lower()
    if plain == "auto" and dtype is not None and dtype.lower() not in ("auto", ""):
        return _BYTES.get(dtype.lower().removeprefix("torch."))
    return _BYTES.get(plain)


def kv_layout(
    model: ModelGeometry,
    *,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    kv_dtype: str | None = None,
    dtype: str | None = None,
    block_size: int = 16,
    version: tuple[int, int, int] | None = None,
    draft_layers: int = 0,
) -> KvLayout | Message:
    """Work out how one GPU stores the cache of a model.

    A message says why when it cannot be told safely.

    Args:
        model: its geometry.
        tensor_parallel: ranks that share the KV heads.
        pipeline_parallel: stages that share the layers; the one with most layers counts.
        kv_dtype: `--kv-cache-dtype`.
        dtype: `--dtype`, looked at where the cache follows it.
        block_size: tokens of a block.
        version: release; None takes the newest rules.
        draft_layers: attention layers a speculative draft adds (EAGLE 1, a draft model all of its).
    """
    if model.linear_layers:
        return Message("ceiling.refused.hybrid", {"model": model.name})
    if model.heads % tensor_parallel:
        # vLLM refuses to start: attention heads have to be divisible by the ranks.
        values = {"heads": model.heads, "ranks": tensor_parallel}
        return Message("ceiling.refused.heads", values)
    if pipeline_parallel > model.layers:
        values = {"layers": model.layers, "stages": pipeline_parallel}
        return Message("ceiling.refused.stages", values)
    element = kv_element_bytes(kv_dtype, dtype)
    latest = version is None or version >= HYBRID_MANAGER
    if model.latent and version is not None and version < MLA_LATENT:
        return Message("ceiling.refused.old_mla", {"model": model.name})
    if model.latent and kv_dtype == "fp8_ds_mla":
        element = FP8_DS_MLA_BYTES / model.latent
    if element is None:
        return Message("ceiling.refused.kv_dtype", {"dtype": str(kv_dtype or dtype)})
    layers = ceil(model.layers / pipeline_parallel) + draft_layers
    if model.latent:
        per_layer = model.latent * element
        heads, replicated = 1, tensor_parallel > 1
        text = f"{layers} layers x {model.latent} latent x {element:g} B"
    else:
        heads = max(1, model.kv_heads // tensor_parallel)
        replicated = tensor_parallel > model.kv_heads
        scales = 8 if kv_dtype in _SCALED else 0
        per_layer = heads * ((model.head_dim + model.v_head_dim) * element + scales)
        text = f"{layers} layers x 2 x {heads} KV heads x {model.head_dim} x {element:g} B"
        if scales:
            text += f" + {layers} x {heads} x {scales} B of scales"
    full, window = _groups(model, pipeline_parallel) if latest else (layers, 0)
    if not window or not full:
        per_token = layers * per_layer
        return KvLayout(
            bytes_per_token=per_token,
            block_size=block_size,
            bytes_per_block=per_token * block_size,
            full_groups=1 if full else 0,
            window_groups=0 if full else 1,
            window=model.window if not full else 0,
            heads_per_rank=heads,
            replicated=replicated,
            formula=f"{text} = {per_token:,.0f} B",
        )
    size = _group_size(full, window, version)
    groups = ceil(full / size), ceil(window / size)
    per_token = sum(groups) * size * per_layer
    return KvLayout(
        bytes_per_token=per_token,
        block_size=block_size,
        bytes_per_block=size * per_layer * block_size,
        full_groups=groups[0],
        window_groups=groups[1],
        window=model.window,
        heads_per_rank=heads,
        replicated=replicated,
        formula=f"{size} layers per group x {per_layer:,.0f} B x {block_size} tokens "
        f"= {size * per_layer * block_size:,.0f} B per block; "
        f"{groups[0]} full + {groups[1]} sliding groups",
    )


def _groups(model: ModelGeometry, stages: int) -> tuple[int, int]:
    return ceil(model.full_layers / stages), ceil(model.window_layers / stages)


def _group_size(full: int, window: int, version: tuple[int, int, int] | None) -> int:
    # Padding a few layers is cheaper than many small groups: 1.25x since 0.13.0, 1.5x since 0.20.0.
    small, large = min(full, window), max(full, window)
    slack = 1.0
    if version is None or version >= (0, 20, 0):
        slack = 1.5
    elif version >= (0, 13, 0):
        slack = 1.25
    return large if large < slack * small else small
