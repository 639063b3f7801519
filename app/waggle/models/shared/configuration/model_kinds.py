"""The kinds of models that the fast path computes, and in what their layers differ; each is tested against transformers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Windows = Literal["none", "all layers", "from a layer on", "most layers"]


@dataclass(frozen=True)
class ModelKind:
    """A kind by its names in the files; names are those within a layer.

    `defaults` are the settings that it means where config.json is silent, if they are not what most kinds mean. `biased` are the
    linear layers with a bias, which depend on `attention_bias` and `mlp_bias` unless `has_biases`. `windows` says which layers
    have sliding windows, if config.json does not name their types.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    qkv: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")  # or all three as one layer
    gate_up: tuple[str, ...] = ("gate_proj", "up_proj")  # or both as one layer
    norms: tuple[str, ...] = (
        "input_layernorm",
        "post_attention_layernorm",
    )  # before attention and feed-forward layers, and after
    normalises_heads: bool = False  # queries and keys
    adds_one: bool = False  # norms multiply by 1 + weight
    scales_embeddings: bool = False  # by the root of their width
    activation: str = "silu"
    biased: tuple[str, ...] = ()
    has_biases: bool = False
    windows: Windows = "none"


ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
KINDS: Mapping[str, ModelKind] = {
    "gemma3_text": ModelKind(
        {
            "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131_072,
            "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "sliding_window": 4096, "tie_word_embeddings": True,
        },
        norms=("input_layernorm", "pre_feedforward_layernorm", "post_attention_layernorm", "post_feedforward_layernorm"),
        normalises_heads=True, adds_one=True, scales_embeddings=True, activation="gelu_pytorch_tanh", biased=ATTENTION,
        windows="most layers",
    ),
    "llama": ModelKind({"max_position_embeddings": 2048}, biased=(*ATTENTION, *FEED_FORWARD)),
    "mistral": ModelKind(
        {"max_position_embeddings": 131_072, "num_key_value_heads": 8, "sliding_window": 4096}, windows="all layers"
    ),
    "phi3": ModelKind(
        {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
        qkv=("qkv_proj",), gate_up=("gate_up_proj",), windows="all layers",
    ),
    "qwen2": ModelKind({"sliding_window": 4096}, biased=ATTENTION[:3], has_biases=True, windows="from a layer on"),
    "qwen3": ModelKind(
        {"head_dim": 128, "sliding_window": 4096}, normalises_heads=True, biased=ATTENTION, windows="from a layer on"
    ),
}  # fmt: skip
PLAIN = ModelKind()  # of a kind that another library computes
