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
from waggle.core.message import Message
from waggle.models.shared import weight_files
from waggle.models.shared.apple_silicon import is_apple_silicon
from waggle.models.shared.configuration import model_config, quantised
from waggle.models.shared.configuration.counted_config import CountedConfig, Settings, estimated_weights, number
from waggle.models.shared.configuration.model_config import ModelConfig, NotOnFastPathError
from waggle.models.shared.error_text import first_line
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm.settings import NotInMlxLmError

# Settings of a stranger's config.json that choose code or outputs. The numbers of the model do not depend on them.
IGNORED = frozenset(
    ("auto_map", "attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation",
     "fusion_config", "kernel_config", "use_kernels", "transformers_weights", "output_attentions", "output_hidden_states",
     "output_router_logits", "return_dict", "use_return_dict", "use_cache", "torchscript", "pruned_heads", "custom_pipelines",
     "distributed_config", "tp_plan")
)  # fmt: skip


class GenericConfig(CountedConfig, frozen=True, kw_only=True):
    """A model that transformers computes."""


def read_any(folder: Path, *, mlx: bool | None = None) -> ModelConfig:
    """The configuration of a model for the fast path, or else for mlx-lm, or else for transformers. Raises ModelError.

    `mlx` says whether MLX computes; by default it does on Apple Silicon. A model that mlx-lm quantised is read for mlx-lm
    everywhere.
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

    def settings(name: str) -> Any:
        return getattr(config, name, None)  # transformers knows a setting by several names

    try:
        heads = number(settings, "num_attention_heads", "num_heads", default=1)
        width = number(settings, "hidden_size")
        inner = number(settings, "intermediate_size", "ffn_dim", "block_ff_dim", "n_inner", default=4 * width)
        inner = max(inner, number(settings, "moe_intermediate_size", default=0))
        fields = {
            "model_type": str(config.model_type),
            "vocab_size": number(settings, "vocab_size"),
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": number(settings, "num_hidden_layers"),
            "num_attention_heads": heads,
            "num_key_value_heads": number(settings, "num_key_value_heads", "num_kv_heads", default=heads),
            "head_dim": number(settings, "head_dim", default=max(1, width // max(1, heads))),
            "tie_word_embeddings": bool(getattr(config, "tie_word_embeddings", False)),
            "max_position_embeddings": number(
                settings, "max_position_embeddings", "max_sequence_length", "context_length", "seq_length", default=2048
            ),
            "counted": 1,
        }
        configuration = msgspec.convert(fields, GenericConfig)
        return msgspec.structs.replace(configuration, counted=_count(folder, configuration, settings))
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, error), "Copy or download it again.") from error


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
        raise ModelError(
            Message("Models of type %1 need transformers, which is not installed.", kind), "Install Waggle again."
        ) from error
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or kind not in CONFIG_MAPPING:
        raise ModelError(
            Message("Waggle cannot train models of the type %1.", kind),
            "Choose another language model from Hugging Face.",
        )
    try:
        return CONFIG_MAPPING[kind].from_dict(_clean(table))
    except Exception as error:  # whatever its checks of a stranger's values raise
        raise ModelError(
            Message("The model in %1 cannot be read: %2.", folder, first_line(error)), "Copy or download it again."
        ) from error


def _clean(value: Any) -> Any:
    """A value of config.json without the settings in IGNORED."""
    if isinstance(value, list):
        return [_clean(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__float__"}:  # as transformers writes infinity
        return float(value["__float__"])
    return {name: _clean(part) for name, part in value.items() if name not in IGNORED}


def _count(folder: Path, shape: ModelConfig, settings: Settings) -> int:
    """The weights in the files, or about as many as the configuration says."""
    try:
        arrays = weight_files.arrays_by_name(folder)
        return max(1, sum(math.prod(array.shape) for array in arrays.values()))
    except (ModelError, OSError, SafetensorError):  # not downloaded yet; or opening the model says what is wrong
        return estimated_weights(shape, settings)
