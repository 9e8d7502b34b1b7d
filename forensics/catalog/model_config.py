"""A Hugging Face ``config.json`` → the geometry of the model.

Configurations of multimodal models nest the language model under ``text_config`` (or
``llm_config``). Fields differ by family; those read here are the ones vLLM itself looks at
(``config/model.py``, ``model_executor/models/config.py``). The parameter count is not in a
configuration: it is reckoned from the shapes, within a few percent for the usual blocks.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from forensics.catalog.model_geometry import ModelGeometry, quantised_bytes
from forensics.errors import ConfigError

MAX_CONFIG_BYTES = 4_000_000
"""A config.json is some kilobytes; more is not one."""
_PLAIN_MLP = frozenset(
    ("opt", "gpt2", "gpt_bigcode", "gpt_neox", "falcon", "bloom", "mpt", "phi", "starcoder2")
)
"""Families whose feed-forward has two matrices; all newer ones have three (gate, up, down)."""

Config = Mapping[str, object]


def geometry_from_config(source: Path | str | Config) -> ModelGeometry:
    """Read the geometry from a ``config.json``, its folder, or its parsed content.

    Raises:
        ConfigError: when it cannot be read or is not the configuration of a language model.
    """
    if isinstance(source, Mapping):
        return _read(source, "config.json")
    path = Path(source)
    file = path / "config.json" if path.is_dir() else path
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{file}: too large to be a model's config.json")
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: cannot be read as a model's config.json ({error})") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: expected a JSON object, as in a model's config.json")
    return _read(content, str(file))


def _read(config: Config, origin: str) -> ModelGeometry:
    text = _nested(config)
    layers = _int(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    heads = _int(text, "num_attention_heads", "n_head", "n_heads")
    hidden = _int(text, "hidden_size", "n_embd", "d_model", "word_embed_proj_dim")
    if not (layers and heads and hidden):
        raise ConfigError(
            f"{origin}: no layers, attention heads or hidden size; is it a language model's "
            "config.json?"
        )
    lora = _int(text, "kv_lora_rank")
    latent = lora + _int(text, "qk_rope_head_dim") if lora else 0
    head_dim = _int(text, "head_dim") or hidden // heads
    linear = _linear_layers(text, layers)
    window, window_layers = _sliding(text, layers)
    params, active = _parameters(text, layers, hidden, heads, head_dim)
    name = str(config.get("_name_or_path") or text.get("model_type") or "config.json")
    return ModelGeometry(
        name=name,
        layers=layers,
        heads=heads,
        kv_heads=1 if latent else _kv_heads(text, heads),
        head_dim=head_dim,
        v_head_dim=_int(text, "v_head_dim") or head_dim,
        window=window,
        window_layers=window_layers,
        latent=latent,
        linear_layers=linear,
        params=params,
        active_params=active,
        bytes_per_param=_weight_bytes(config, text),
        source=origin,
    )


def _nested(config: Config) -> Config:
    for key in ("text_config", "llm_config", "language_config"):
        inner = config.get(key)
        if isinstance(inner, dict) and "num_hidden_layers" in inner:
            return inner
    return config


def _int(config: Config, *keys: str) -> int:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
            return value
    return 0


def _kv_heads(config: Config, heads: int) -> int:
    if config.get("new_decoder_architecture") or "num_key_value_heads" in config:
        return _int(config, "num_key_value_heads", "num_kv_heads", "n_head_kv") or heads
    if config.get("multi_query") is True or config.get("multi_query_attention") is True:
        return _int(config, "multi_query_group_num") or 1
    return _int(config, "num_kv_heads", "n_head_kv", "num_query_groups") or heads


def _linear_layers(config: Config, layers: int) -> int:
    kinds = config.get("layers_block_type") or config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return sum(1 for kind in kinds if kind in ("mamba", "linear_attention", "recurrent"))
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        # Nemotron-H: M Mamba, * attention, - feed-forward alone, which keeps nothing per token.
        return layers - pattern.count("*")
    if period := _int(config, "attn_layer_period"):
        return layers - len(range(_int(config, "attn_layer_offset"), layers, period))
    if period := _int(config, "full_attention_interval"):
        return layers - layers // period
    return layers if config.get("model_type") in ("mamba", "mamba2", "falcon_mamba") else 0


def _sliding(config: Config, layers: int) -> tuple[int, int]:
    window = _int(config, "sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return 0, 0
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        sliding = sum(1 for kind in kinds if kind == "sliding_attention")
        return (window, sliding) if sliding else (0, 0)
    pattern = config.get("sliding_window_pattern")
    if isinstance(pattern, int) and pattern > 1:
        return window, layers - layers // pattern
    if config.get("model_type") == "gemma2":
        return window, layers // 2
    return window, layers


def _weight_bytes(config: Config, text: Config) -> float:
    quant = config.get("quantization_config") or text.get("quantization_config")
    if isinstance(quant, dict):
        bits = quant.get("bits") or quant.get("w_bit")
        method = f"{quant.get('quant_method', '')} {quant.get('fmt', '')} {quant.get('format', '')}"
        told = quantised_bytes(f"int{bits}" if isinstance(bits, int) else method)
        if told is not None:
            return told
    dtype = config.get("torch_dtype") or config.get("dtype") or text.get("torch_dtype")
    # vLLM serves float32 checkpoints in 16 bits unless told otherwise (`--dtype auto`).
    return 1.1 if isinstance(dtype, str) and "float8" in dtype else 2.0


def _parameters(
    config: Config, layers: int, hidden: int, heads: int, head_dim: int
) -> tuple[float, float]:
    kv_heads = _kv_heads(config, heads)
    if lora := _int(config, "kv_lora_rank"):
        nope, rope = _int(config, "qk_nope_head_dim"), _int(config, "qk_rope_head_dim")
        value = _int(config, "v_head_dim") or nope
        query = _int(config, "q_lora_rank")
        queries = (
            query * (hidden + heads * (nope + rope)) if query else hidden * heads * (nope + rope)
        )
        attention = queries + hidden * (lora + rope) + lora * heads * (nope + value)
        attention += heads * value * hidden
    else:
        attention = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
    matrices = 2 if config.get("model_type") in _PLAIN_MLP else 3
    inner = _int(config, "intermediate_size", "ffn_dim", "n_inner") or 4 * hidden
    dense = matrices * hidden * inner
    experts = _int(config, "num_local_experts", "num_experts", "n_routed_experts")
    embedding = _int(config, "vocab_size") * hidden
    embeddings = embedding if config.get("tie_word_embeddings") is True else 2 * embedding
    if not experts:
        total = layers * (attention + dense) + embeddings
        return float(total), float(total)
    size = matrices * hidden * (_int(config, "moe_intermediate_size") or inner)
    shared = _int(config, "n_shared_experts") * size
    chosen = _int(config, "num_experts_per_tok", "num_experts_per_token", "moe_topk") or 2
    plain = min(_int(config, "first_k_dense_replace"), layers)
    mixed = layers - plain
    common = layers * attention + plain * dense + mixed * shared + embeddings
    return float(common + mixed * experts * size), float(common + mixed * chosen * size)
