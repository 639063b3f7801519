"""Tiny random checkpoints of the kinds of models that people have, for the generic path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

SHAPE: Mapping[str, Any] = {
    "vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0,
    "initializer_range": 0.1,
}  # fmt: skip
ABSENT = object()  # a setting of SHAPE that the kind does not have
HEAD = {"head_dim": 16}
WINDOW = 16  # tokens; the texts of the tests are longer
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256, "rope_theta": 500_000.0,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "rope_theta": 10_000.0}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
LOCAL_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
LINEAR_HEADS = {
    "linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
MIXED_WINDOWS = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4}
TOKENS = {name: SHAPE[name] for name in ("vocab_size", "bos_token_id", "eos_token_id", "initializer_range")}
PADDED = TOKENS | {"pad_token_id": 0}

# By name: the class of the configuration without "Config", and the settings beside SHAPE, or instead of it if `plain`.
KINDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama3 rope": ("Llama", {"rope_parameters": LLAMA3}),
    "llama attention bias": ("Llama", {"attention_bias": True}),
    "llama mlp bias": ("Llama", {"mlp_bias": True}),
    "llama yarn": ("Llama", {"rope_parameters": YARN}),
    "llama gelu": ("Llama", {"hidden_act": "gelu"}),
    "qwen2": ("Qwen2", {}),
    "qwen2 window": ("Qwen2", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}),
    "qwen2 yarn": ("Qwen2", {"rope_parameters": YARN}),
    "qwen3": ("Qwen3", HEAD),
    "qwen3-moe": ("Qwen3Moe", HEAD | EXPERTS),
    "qwen3-next": ("Qwen3Next", HEAD | EXPERTS | LINEAR_HEADS | {"shared_expert_intermediate_size": 32}),
    "qwen3.5": ("Qwen3_5Text", HEAD | LINEAR_HEADS),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral window": ("Mistral", {"sliding_window": WINDOW}),
    "ministral": ("Ministral", HEAD | MIXED_WINDOWS),
    "ministral3": ("Ministral3", HEAD),
    "mixtral": ("Mixtral", LOCAL_EXPERTS),
    "gemma2": ("Gemma2", HEAD | MIXED_WINDOWS),
    "gemma3": ("Gemma3Text", HEAD | MIXED_WINDOWS),
    "gemma3n": ("Gemma3nText", HEAD | MIXED_WINDOWS | {
        "vocab_size_per_layer_input": 97, "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 0, "laurel_rank": 8,
        "activation_sparsity_pattern": [0.0, 0.0], "altup_num_inputs": 2,
    }),
    "phi": ("Phi", {}),
    "phi3": ("Phi3", {"sliding_window": WINDOW}),
    "smollm3": ("SmolLM3", {}),
    "olmo2": ("Olmo2", {}),
    "olmo3": ("Olmo3", MIXED_WINDOWS),
    "granite": ("Granite", {"logits_scaling": 2.0}),
    "granitemoehybrid": ("GraniteMoeHybrid", {
        "layer_types": ["attention", "attention"], "num_local_experts": 0, "shared_intermediate_size": 96,
    }),
    "gpt2": ("GPT2", {"plain": True, **TOKENS, **GPT, "n_positions": 512}),
    "gpt-neox": ("GPTNeoX", {"num_key_value_heads": ABSENT}),
    "opt": ("OPT", {
        "plain": True, **PADDED, "hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 512, "word_embed_proj_dim": 64,
    }),
    "stablelm": ("StableLm", {}),
    "falcon": ("Falcon", {"plain": True, **TOKENS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}),
    "falcon-h1": ("FalconH1", {
        "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1,
    }),
    "cohere2": ("Cohere2", MIXED_WINDOWS | {"logit_scale": 0.25}),
    "deepseek-v3": ("DeepseekV3", {
        "moe_intermediate_size": 32, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 2,
        "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 16, "num_key_value_heads": 4,
    }),
    "lfm2": ("Lfm2", {"block_ff_dim": 96, "layer_types": ["conv", "full_attention"]}),
    "mamba2": ("Mamba2", {
        "plain": True, **PADDED, "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 16, "state_size": 16,
        "n_groups": 1,
    }),
    "glm4": ("Glm4", HEAD),
    "exaone4": ("Exaone4", MIXED_WINDOWS),
    "gpt-oss": ("GptOss", HEAD | LOCAL_EXPERTS | MIXED_WINDOWS),
    "hunyuan-dense": ("HunYuanDenseV1", HEAD),
    "ernie4.5": ("Ernie4_5", HEAD),
    "helium": ("Helium", HEAD),
    "nemotron": ("Nemotron", {}),
    "starcoder2": ("Starcoder2", {"sliding_window": WINDOW}),
    "bitnet": ("BitNet", {}),
    "apertus": ("Apertus", {}),
    "seed-oss": ("SeedOss", HEAD),
    "arcee": ("Arcee", {}),
    "bloom": ("Bloom", {"plain": True, **PADDED, "hidden_size": 64, "n_layer": 2, "n_head": 4}),
    "rwkv": ("Rwkv", {
        "plain": True, **TOKENS, "hidden_size": 64, "num_hidden_layers": 2, "attention_hidden_size": 64, "intermediate_size": 96,
    }),
}  # fmt: skip


def make_kind(kind: str, folder: Path, **others: Any) -> Path:
    """Write a random model of a kind, in fp32 and without a tokenizer."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    class_name, more = KINDS[kind]
    settings = {} if more.get("plain") else dict(SHAPE)
    settings |= {name: value for name, value in more.items() if name != "plain"}
    settings = {name: value for name, value in settings.items() if value is not ABSENT} | others
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, f"{class_name}Config")(**settings))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # initialised with zeros, which would hide a missing bias
            torch.nn.init.normal_(parameter, std=0.1)
    torch.nn.init.normal_(model.get_input_embeddings().weight.data[0], std=0.1)  # of the padding token, initialised with zeros
    model.save_pretrained(folder)
    return folder
