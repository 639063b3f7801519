"""The configuration of a model that transformers computes, in the terms of `ModelConfig`, for memory fit, rates and limits.

transformers is imported here, and only for a model that the fast path does not compute: it takes a second and 150 MB.
"""

import importlib.util
import math
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.models.shared import model_config, quantised, weight_files
from waggle.models.shared.apple_silicon import is_apple_silicon
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm.settings import NotInMlxLmError
from waggle.models.shared.model_config import CountedConfig, ModelConfig, NotOnFastPathError

# Settings of a stranger's config.json that choose code or outputs. The numbers of the model do not depend on them.
IGNORED = frozenset(
    ("auto_map", "attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation",
     "fusion_config", "kernel_config", "use_kernels", "transformers_weights", "output_attentions", "output_hidden_states",
     "output_router_logits", "return_dict", "use_return_dict", "use_cache", "torchscript", "pruned_heads", "custom_pipelines",
     "distributed_config", "tp_plan")
)  # fmt: skip
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


class GenericConfig(CountedConfig, frozen=True, kw_only=True):
    """A model that transformers computes."""


def read_any(folder: Path, *, mlx: bool | None = None) -> ModelConfig:
    """The configuration of a model for the fast path, or else for mlx-lm, or else for transformers. Raises ModelError.

    `mlx` says whether MLX computes; by default it does on Apple Silicon. What mlx-lm quantised is read in any case.
    """
    if mlx_lm_config.is_packed(model_config.table_of(folder)):
        return mlx_lm_config.read(folder)
    try:
        return model_config.read(folder)
    except NotOnFastPathError:
        if not (is_apple_silicon() if mlx is None else mlx):
            return read(folder)
    try:
        return mlx_lm_config.read(folder)
    except NotInMlxLmError:
        if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
            raise
        return read(folder)


def read(folder: Path) -> GenericConfig:
    """The configuration of a model that transformers knows. Raises ModelError."""
    whole = transformers_config(folder)
    config = whole.get_text_config()
    try:
        heads = _number(config, "num_attention_heads", "num_heads", default=1)
        width = _number(config, "hidden_size")
        inner = _number(config, "intermediate_size", "ffn_dim", "block_ff_dim", "n_inner", default=4 * width)
        inner = max(inner, _number(config, "moe_intermediate_size", default=0))
        fields = {
            "model_type": str(config.model_type),
            "vocab_size": _number(config, "vocab_size"),
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": _number(config, "num_hidden_layers"),
            "num_attention_heads": heads,
            "num_key_value_heads": _number(config, "num_key_value_heads", "num_kv_heads", default=heads),
            "head_dim": _number(config, "head_dim", default=max(1, width // max(1, heads))),
            "tie_word_embeddings": bool(getattr(config, "tie_word_embeddings", False)),
            "max_position_embeddings": _number(
                config, "max_position_embeddings", "max_sequence_length", "context_length", "seq_length", default=2048
            ),
            "counted": 1,
        }
        configuration = msgspec.convert(fields, GenericConfig)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"The model in {folder} cannot be read: {error}.", "Copy or download it again.") from error
    return msgspec.structs.replace(configuration, counted=_count(folder, configuration, config))


def transformers_config(folder: Path) -> Any:
    """transformers' configuration of a folder, without the settings in IGNORED. Raises ModelError."""
    table = model_config.table_of(folder)
    quantised.require_plain(folder, table)
    kind = table.get("model_type")
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        from transformers.utils import logging
    except ImportError as error:
        raise ModelError(f"Models of type {kind} need transformers, which is not installed.", "Install Waggle again.") from error
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or kind not in CONFIG_MAPPING:
        raise ModelError(
            f"Waggle does not know models of type {kind}.", "It knows the language models of transformers. Choose another model."
        )
    try:
        return CONFIG_MAPPING[kind].from_dict(_clean(table))
    except Exception as error:  # whatever its checks of a stranger's values raise
        raise ModelError(f"The model in {folder} cannot be read: {_first_line(error)}.", "Copy or download it again.") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _clean(value: Any) -> Any:
    """A value of config.json without the settings in IGNORED."""
    if isinstance(value, list):
        return [_clean(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__float__"}:  # as transformers writes infinity
        return float(value["__float__"])
    return {name: _clean(part) for name, part in value.items() if name not in IGNORED}


def _number(config: Any, *names: str, default: int | None = None) -> int:
    """The first of these settings that is there; the largest, if there is one for each layer."""
    for name in names:
        value: Any = getattr(config, name, None)
        if isinstance(value, list | tuple) and value:
            value = max(value)
        if value is not None:
            return int(value)
    if default is None:
        raise ValueError(f"{names[0]} is missing")
    return default


def _count(folder: Path, shape: ModelConfig, config: Any) -> int:
    """The weights in the files, or about as many as the configuration says."""
    try:
        arrays = weight_files.arrays_by_name(folder)
        return max(1, sum(math.prod(array.shape) for array in arrays.values()))
    except (ModelError, OSError, SafetensorError):  # not downloaded yet; or opening the model says what is wrong
        experts = max(1, _number(config, *EXPERTS, default=1))
        inner = _number(config, "moe_intermediate_size", default=shape.intermediate_size) * experts
        attention = shape.head_dim * (2 * shape.num_attention_heads + 2 * shape.num_key_value_heads)
        layers = shape.num_hidden_layers * shape.hidden_size * (attention + 3 * max(inner, shape.intermediate_size))
        return layers + shape.vocab_size * shape.hidden_size * (1 if shape.tie_word_embeddings else 2)
