"""The configuration of a model that mlx-lm computes, in the terms of `ModelConfig`, from config.json alone.

Neither MLX nor transformers is imported.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.shared import weight_files
from waggle.models.shared.configuration import model_config, quantised
from waggle.models.shared.configuration.counted_config import CountedConfig, estimated_weights, number
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules
from waggle.models.shared.mlx_lm import settings as mlx_lm_settings
from waggle.models.shared.mlx_lm.settings import NotInMlxLmError

MOST_OF_A_KIND = 1 << 14  # layers, heads, experts, groups: settings that begin with "num_"
LARGEST = 1 << 48  # of any number; some models name a context without end
GROUPS, BITS = (16, 32, 64, 128), (2, 3, 4, 5, 6, 8)
PRECISIONS = {"F32": 4, "F16": 2, "BF16": 2, "U32": 4, "U8": 1}


class Quantization(msgspec.Struct, frozen=True):
    """How mlx-lm packed the weights of a layer: each group of numbers has a scale."""

    group_size: int
    bits: int
    mode: Literal["affine", "mxfp4", "mxfp8", "nvfp4"] = "affine"


class MlxLmConfig(CountedConfig, frozen=True, kw_only=True):
    """`packed_bytes` are those of all weights, if they are quantised; such a model can be trained with adapters only.

    `made_from` is the name of the model that it was made from, if that is known.
    """

    packed_bytes: int = 0
    made_from: str = ""


def is_packed(table: Mapping[str, Any]) -> bool:
    """Whether config.json says that mlx-lm quantised the model."""
    packed = table.get("quantization")
    return isinstance(packed, dict) and "bits" in packed and "group_size" in packed


def quantization(table: Mapping[str, Any]) -> tuple[Quantization | None, dict[str, Quantization | None]]:
    """How the weights are packed, and by name the layers that differ, None for those that are not packed. Raises ModelError."""
    if not is_packed(table):
        return None, {}
    packed = table["quantization"]
    try:
        usual = _checked({name: packed[name] for name in Quantization.__struct_fields__ if name in packed})
        others = {
            name: _checked(value) if isinstance(value, dict) else (usual if value is True else None)
            for name, value in packed.items()
            if name not in Quantization.__struct_fields__ and isinstance(value, dict | bool)
        }
    except msgspec.ValidationError as error:
        raise ModelError(Message("The model's quantisation cannot be read: %1.", error), ANOTHER) from error
    return usual, others


def read(folder: Path) -> MlxLmConfig:
    """The configuration of a model that mlx-lm knows. Raises ModelError; NotInMlxLmError if only mlx-lm is not able to."""
    table = known_table(folder)
    text = table["text_config"] if isinstance(table.get("text_config"), dict) else table
    numbers = {**table, **text}
    try:
        heads = number(numbers.get, "num_attention_heads", "n_head", "num_heads", "n_heads", default=1)
        width = number(numbers.get, "hidden_size", "n_embd", "d_model", "dim", "model_dim")
        inner = number(numbers.get, "intermediate_size", "n_inner", "block_ff_dim", "ffn_dim", default=4 * width)
        fields = {
            "model_type": str(table["model_type"]),
            "vocab_size": number(numbers.get, "vocab_size"),
            "hidden_size": width,
            "intermediate_size": max(inner, number(numbers.get, "moe_intermediate_size", default=0)),
            "num_hidden_layers": number(numbers.get, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
            "num_attention_heads": heads,
            "num_key_value_heads": number(numbers.get, "num_key_value_heads", default=heads),
            "head_dim": number(numbers.get, "head_dim", default=max(1, width // max(1, heads))),
            "tie_word_embeddings": bool(numbers.get("tie_word_embeddings", False)),
            "max_position_embeddings": min(1 << 24, _context(table, numbers)),
            "counted": 1,
        }
        configuration = msgspec.convert(fields, MlxLmConfig)
        counted, packed = _count(folder, configuration, numbers)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, error), "Copy or download it again.") from error
    if not is_packed(table):
        packed = 0
    return msgspec.structs.replace(
        configuration, counted=counted, packed_bytes=packed, made_from=quantised.made_from(folder, table) if packed else ""
    )


def known_table(folder: Path) -> dict[str, Any]:
    """The object in config.json of a model that mlx-lm knows, with bounded numbers. Raises ModelError."""
    table = model_config.table_of(folder)
    kind = table.get("model_type")
    if "model_file" in table:
        raise NotInMlxLmError(Message("The model in %1 needs code of its own, which Waggle never runs.", folder), ANOTHER)
    if not is_packed(table):
        quantised.require_plain(folder, table)
    if not mlx_lm_modules.is_known(kind):
        raise NotInMlxLmError(
            Message("Waggle cannot train models of the type %1 on this computer.", kind),
            "Choose another language model that mlx-lm can open.",
        )
    if problem := _unbounded(table):
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, problem), "Copy or download it again.")
    quantization(table)
    return table


def _checked(packed: Mapping[str, Any]) -> Quantization:
    result = msgspec.convert(packed, Quantization)
    if result.group_size not in GROUPS or result.bits not in BITS:
        raise msgspec.ValidationError(Message("%1 bits in groups of %2", result.bits, result.group_size))
    return result


def _unbounded(value: Any, name: str = "") -> str:
    """What is too large in a value of config.json; empty if nothing is."""
    if isinstance(value, dict):
        return next((problem for key, part in value.items() if (problem := _unbounded(part, key))), "")
    if isinstance(value, list):
        if len(value) > MOST_OF_A_KIND:
            return f"{name} has {len(value)} entries"
        return next((problem for part in value if (problem := _unbounded(part, name))), "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        most = MOST_OF_A_KIND if name.startswith("num_") else LARGEST
        if math.isfinite(value) and abs(value) > most and not name.startswith(("num_logits", "num_ctx")):
            return f"{name} is {value}"
    return ""


def _context(table: Mapping[str, Any], numbers: Mapping[str, Any]) -> int:
    """The longest text; where a module would pass over sliding windows that Waggle does not put in, it ends with the window."""
    context = number(
        numbers.get, "max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", default=2048
    )
    window = numbers.get("sliding_window")
    is_heeded = mlx_lm_settings.heeds_windows(str(table["model_type"])) or bool(mlx_lm_settings.windows(numbers))
    return context if is_heeded or not isinstance(window, int) or not window else min(context, window)


def _count(folder: Path, shape: CountedConfig, numbers: Mapping[str, Any]) -> tuple[int, int]:
    """The weights in the files and their bytes, or about as many as the configuration says."""
    try:
        arrays = weight_files.arrays_by_name(folder)
    except (ModelError, OSError, SafetensorError):  # not downloaded yet; or opening the model says what is wrong
        count = estimated_weights(shape, numbers.get)
        usual, _ = quantization(numbers)
        return count, int(count * (usual.bits + 32 / usual.group_size) / 8) if usual else 4 * count
    usual, others = quantization(numbers)
    count = size = 0
    for name, array in arrays.items():
        size += math.prod(array.shape) * PRECISIONS.get(array.precision, 8)
        module, _, last = name.rpartition(".")
        if last == "weight" and array.precision == "U32":
            packing = others.get(module) or usual
            count += math.prod(array.shape) * 32 // (packing.bits if packing else 4)
        elif f"{module}.scales" not in arrays or last == "bias":
            count += math.prod(array.shape)
    return max(1, count), size
