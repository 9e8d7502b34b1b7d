"""Model names in any dress, and geometry read from config.json."""

import json

import pytest

from forensics.catalog.model_config import geometry_from_config
from forensics.catalog.models import geometry, models
from forensics.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("meta-llama/Meta-Llama-3-8B", (32, 8, 128)),
        ("meta-llama/Llama-3.1-8B-Instruct", (32, 8, 128)),
        ("/models/Llama-3.1-8B-Instruct/", (32, 8, 128)),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", (80, 8, 128)),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", (32, 8, 128)),
        ("Qwen/Qwen2.5-7B-Instruct", (28, 4, 128)),
        ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int4", (64, 8, 128)),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", (48, 4, 128)),
        ("mistralai/Mistral-7B-Instruct-v0.3", (32, 8, 128)),
        ("meta-llama/Llama-2-7b-chat-hf", (32, 32, 128)),
        ("models--meta-llama--Llama-3.2-3B-Instruct/snapshots/0cb88a4f", (28, 8, 128)),
    ],
)
def test_names_are_found_in_any_dress(name, shape) -> None:
    found = geometry(name)
    assert found is not None
    assert (found.layers, found.kv_heads, found.head_dim) == shape


def test_unknown_names_are_none_and_quantisation_changes_the_weights() -> None:
    assert geometry(None) is None
    assert geometry("tiny-llama") is None
    assert geometry("my-model") is None
    assert geometry("Meta-Llama-3-8B").weight_bytes / 2**30 == pytest.approx(14.96, abs=0.01)
    assert geometry("x/Llama-3.1-8B-Instruct-AWQ").bytes_per_param == 0.65
    assert geometry("x/Llama-3.1-8B-Instruct-FP8").bytes_per_param == 1.1


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.name)
def test_every_entry_is_plausible(model) -> None:
    assert geometry(model.name) is not None
    assert model.full_layers >= 0
    assert bool(model.window) == bool(model.window_layers)
    assert (model.latent > 0) != (model.head_dim > 0)
    assert model.heads % model.kv_heads == 0
    assert 0 < model.active_params <= model.params


def test_kinds() -> None:
    kinds = {
        "Llama-2-7b-hf": "MHA",
        "Meta-Llama-3-8B": "GQA",
        "falcon-7b": "MQA",
        "DeepSeek-V3": "MLA",
        "gemma-3-27b-it": "sliding",
        "Qwen3-Next-80B-A3B-Instruct": "hybrid",
    }
    assert {name: geometry(name).kind for name in kinds} == kinds


LLAMA3 = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def test_a_configuration_gives_the_geometry_and_the_parameter_count(tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA3))
    for source in (LLAMA3, tmp_path, tmp_path / "config.json"):
        found = geometry_from_config(source)
        assert (found.layers, found.kv_heads, found.head_dim) == (32, 8, 128)
        assert found.params == pytest.approx(8.03e9, rel=0.001)
        assert found.kind == "GQA"


def test_configurations_of_other_families() -> None:
    gemma3 = {
        "text_config": {
            "num_hidden_layers": 62,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "hidden_size": 5376,
            "sliding_window": 1024,
            "sliding_window_pattern": 6,
        }
    }
    found = geometry_from_config(gemma3)
    assert (found.window, found.window_layers, found.full_layers) == (1024, 52, 10)
    deepseek = {
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "quantization_config": {"quant_method": "fp8"},
    }
    found = geometry_from_config(deepseek)
    assert (found.latent, found.kind, found.bytes_per_param) == (576, "MLA", 1.1)
    assert found.params == pytest.approx(671e9, rel=0.01)
    assert found.active_params == pytest.approx(37e9, rel=0.03)
    next80b = {
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "hidden_size": 2048,
        "full_attention_interval": 4,
    }
    assert geometry_from_config(next80b).full_layers == 12
    falcon = {"n_layer": 32, "n_head": 71, "hidden_size": 4544, "multi_query": True}
    assert geometry_from_config(falcon).kv_heads == 1
    qwen = LLAMA3 | {"sliding_window": 131072, "use_sliding_window": False}
    assert geometry_from_config(qwen).kind == "GQA"


def test_what_is_no_model_configuration_is_said(tmp_path) -> None:
    with pytest.raises(ConfigError, match="hidden size"):
        geometry_from_config({"a": 1})
    with pytest.raises(ConfigError, match="cannot be read"):
        geometry_from_config(tmp_path / "missing.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ConfigError, match="JSON object"):
        geometry_from_config(tmp_path / "list.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        geometry_from_config(tmp_path / "bad.json")
