"""Small random models of every supported architecture."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
)

from waggle.models.torch.policy import TorchPolicy

LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
WINDOW = 8  # tokens; the texts of the tests are several times as long
LAST_LAYER = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}
GEMMA = {
    "sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 12,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}  # fmt: skip
WINDOWED = {
    "gemma3": (Gemma3TextConfig, GEMMA),
    "mistral window": (MistralConfig, {"sliding_window": WINDOW}),
    "phi3 window": (Phi3Config, {"sliding_window": WINDOW}),
    "qwen2 window": (Qwen2Config, LAST_LAYER),
    "qwen3 window": (Qwen3Config, LAST_LAYER | {"max_window_layers": 0}),
}
KINDS = WINDOWED | {
    "llama": (LlamaConfig, {}),
    "mistral": (MistralConfig, {"sliding_window": None}),
    "phi3": (Phi3Config, {}),
    "qwen2": (Qwen2Config, {}),
    "qwen3": (Qwen3Config, {}),
    "llama3 rope": (LlamaConfig, {"rope_parameters": LLAMA3}),
    "linear rope": (LlamaConfig, {"rope_parameters": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 2.0}}),
    "biases": (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "wide heads": (Qwen3Config, {"head_dim": 16}),
}


def make_model(kind: str, folder: Path, *, tied: bool = True, inner: int = 48) -> Path:
    """Write a random model of about 50,000 parameters."""
    torch.manual_seed(0)
    make_config, more = KINDS[kind]
    usual = {
        "vocab_size": 97,
        "hidden_size": 32,
        "intermediate_size": inner,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 256,
        "tie_word_embeddings": tied,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    model = AutoModelForCausalLM.from_config(make_config(**(usual | more)))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # initialised with zeros, which would hide a missing bias
            torch.nn.init.normal_(parameter, std=0.1)
        if kind == "gemma3" and name.endswith("norm.weight"):  # likewise, which would hide that 1 is added to them
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    return folder


def as_transformers(policy: TorchPolicy, folder: Path) -> Any:
    """transformers' own model of a folder, with the weights of a policy."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for name, parameter in policy._model.weights.items():
        module, _, kind = name.rpartition(".")
        setattr(model.get_submodule(module), kind, parameter)
    model.tie_weights()
    return model
