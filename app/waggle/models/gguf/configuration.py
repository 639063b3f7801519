"""The configuration of the model in a GGUF file, in transformers' terms. For a process of its own: it imports transformers.

Field names are translated by transformers' own tables. A field that no table reads is compared with what transformers would
compute; if it differs, the file is refused, rather than trained as another model than it is.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from waggle.core.message import Message
from waggle.models.gguf.header import Header, UnreadableError
from waggle.models.shared.configuration.model_config import RopeConfig, scale_llama3

# transformers' name of each architecture. Mixtures of experts are left out: their tensors are joined, which takes much memory.
KINDS = {
    "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "phi3": "phi3", "gemma2": "gemma2", "gemma3": "gemma3_text",
    "gpt2": "gpt2", "starcoder2": "starcoder2", "stablelm": "stablelm", "nemotron": "nemotron", "mamba": "mamba",
    "lfm2": "lfm2", "qwen35": "qwen3_5_text",
}  # fmt: skip
ROPE_FACTORS = "rope_freqs.weight"  # of Llama 3: by how much each frequency is divided
# Of all versions of Llama 3.
LLAMA3: Mapping[str, Any] = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
SPLIT = "split.count"
PASSED_OVER = frozenset(
    ("vocab_size", "tensor_data_layout", "context_length", "block_count", "rope.scaling.original_context_length",
     "rope.scaling.finetuned")
)  # fmt: skip  # fields without a part in the computation
Read = Callable[[str], Any]  # a setting of transformers' configuration by name; None if it has none


def _head_width(setting: Read) -> Any:
    return setting("head_dim") or (setting("hidden_size") or 0) // max(1, setting("num_attention_heads") or 1)


def _rotated_width(setting: Read) -> Any:
    rope = setting("rope_parameters") or {}
    return int(_head_width(setting) * (rope.get("partial_rotary_factor") or setting("partial_rotary_factor") or 1.0))


# What a field has to be if no table reads it.
EXPECTED: Mapping[str, Callable[[Read], Any]] = {
    "attention.key_length": _head_width,
    "attention.value_length": _head_width,
    "rope.dimension_count": _rotated_width,
    "rope.freq_base": lambda setting: (setting("rope_parameters") or {}).get("rope_theta"),
    "attention.sliding_window": lambda setting: setting("sliding_window"),
    "attention.causal": lambda _: True,
    "attention.layer_norm_epsilon": lambda setting: setting("layer_norm_eps") or setting("norm_eps"),
    "attention.layer_norm_rms_epsilon": lambda setting: setting("rms_norm_eps") or setting("norm_eps"),
    "attn_logit_softcapping": lambda setting: setting("attn_logit_softcapping"),
    "final_logit_softcapping": lambda setting: setting("final_logit_softcapping"),
    "use_parallel_residual": lambda setting: setting("use_parallel_residual"),
    "feed_forward_length": lambda setting: setting("n_inner") or 4 * (setting("n_embd") or 0),
    "rope.scaling.type": lambda _: "none",
    "rope.scaling.factor": lambda _: 1.0,
    "rope.scaling.attn_factor": lambda _: 1.0,
    "expert_count": lambda _: 0,
    "expert_used_count": lambda _: 0,
    "ssm.dt_b_c_rms": lambda _: False,
}


def require_supported(header: Header) -> None:
    """Raise UnreadableError for a file whose kind cannot be converted, before transformers is imported."""
    if header.fields.get(SPLIT, 1) not in (0, 1):
        raise UnreadableError("it is a part of a model that is split into several files")
    if header.architecture not in KINDS:
        kind = header.architecture[:60] or "no kind"
        raise UnreadableError(Message("it holds a model of type %1, and Waggle converts %2", kind, ", ".join(KINDS)))
    layers = header.of_architecture("block_count")
    if not isinstance(layers, int) or not 0 < layers <= len(header.tensors):  # transformers makes as many modules
        raise UnreadableError("it claims more layers than it has tensors")
    if not isinstance(header.fields.get("tokenizer.ggml.tokens"), list):
        raise UnreadableError("it has no vocabulary")


def read(header: Header, rope_factors: np.ndarray[Any, Any] | None) -> Any:
    """transformers' configuration. `rope_factors` (head_dim / 2,): the tensor ROPE_FACTORS if the file has it.

    Raises UnreadableError, and whatever transformers' checks of a stranger's values raise.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    table, translated = _table(header)
    if rope_factors is not None:
        table["rope_parameters"] = _scaled_rope(header, table, rope_factors)
    elif header.of_architecture("rope.scaling.type") == "linear" and header.architecture in ("llama", "qwen2", "qwen3"):
        factor = float(header.of_architecture("rope.scaling.factor"))
        theta = float(table.pop("rope_theta", 10_000.0))
        table["rope_parameters"] = {"rope_type": "linear", "rope_theta": theta, "factor": factor}
        translated |= {"rope.scaling.type", "rope.scaling.factor"}
    config = CONFIG_MAPPING[KINDS[header.architecture]].from_dict(table)
    _require_equal(header, translated, lambda name: getattr(config, name, None))
    return config


def _table(header: Header) -> tuple[dict[str, Any], set[str]]:
    """transformers' settings, and the fields that they were read from."""
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING
    from transformers.integrations.gguf import GGUF_CONFIG_ARCHS, get_gguf_config

    own = f"{header.architecture}."
    names = tuple(header.tensors)
    if header.architecture in GGUF_CONFIG_ARCHS:  # these functions take the length of a vocabulary for the list of its words
        counted = {name: len(value) if _is_words(value) else value for name, value in header.fields.items()}
        fields = _RecordedFields(counted)
        return get_gguf_config(fields, names), {name.removeprefix(own) for name in fields.read}
    mapping = GGUF_CONFIG_MAPPING[header.architecture]
    read = {new: header.fields[own + old] for old, new in mapping.items() if new and own + old in header.fields}
    read["tie_word_embeddings"] = "output.weight" not in header.tensors
    read.setdefault("vocab_size", len(header.fields["tokenizer.ggml.tokens"]))
    special = GGUF_CONFIG_MAPPING["tokenizer"]
    read |= {new: header.fields[f"tokenizer.{old}"] for old, new in special.items() if f"tokenizer.{old}" in header.fields}
    if header.architecture in ("qwen3", "gemma3") and header.of_architecture("attention.key_length") is not None:
        read["head_dim"] = header.of_architecture("attention.key_length")
    if header.architecture == "phi3":
        read["sliding_window"] = header.of_architecture("attention.sliding_window")
    if header.architecture in ("starcoder2", "stablelm"):
        read["rope_theta"] = header.of_architecture("rope.freq_base")
    if header.architecture == "gpt2":  # transformers' table has another name for it
        read["n_positions"] = read.get("n_ctx")
    if header.architecture == "stablelm":  # as transformers does
        read["use_qkv_bias"] = "blk.0.attn_q.bias" in header.tensors
        read["use_parallel_residual"] = not any("ffn_norm" in name for name in names)
    return read, {old for old, new in mapping.items() if new}


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


class _RecordedFields(dict[str, Any]):
    """Fields that record which of them are read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


def _scaled_rope(header: Header, table: dict[str, Any], factors: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Llama 3's settings that give these factors. Raises UnreadableError if none do."""
    theta = float(table.pop("rope_theta", 10_000.0))
    scaled = {**LLAMA3, "rope_type": "llama3", "rope_theta": theta, "factor": round(float(factors.max()), 3)}
    width = 2 * factors.size
    plain = np.asarray(1.0 / theta ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width)), np.float32)
    expected = plain / scale_llama3(RopeConfig(**scaled), plain)
    if header.architecture != "llama" or not np.allclose(factors, expected, rtol=1e-3):
        raise UnreadableError("it scales its positions in a way that Waggle does not know")
    return scaled


def _require_equal(header: Header, translated: set[str], setting: Read) -> None:
    """Raise UnreadableError for a field that transformers passes over although it changes what the model computes."""
    own = f"{header.architecture}."
    for label, value in header.fields.items():
        name = label.removeprefix(own)
        if name == label or name in translated or name in PASSED_OVER:
            continue
        if name not in EXPECTED or not _is_equal(value, EXPECTED[name](setting)):
            raise UnreadableError(Message("it has the setting %1, which transformers would pass over", label[:80]))


def _is_equal(value: Any, expected: Any) -> bool:
    if isinstance(value, float) or isinstance(expected, float):
        return expected is not None and math.isclose(float(value), float(expected), rel_tol=1e-5)
    return bool(value == expected)
