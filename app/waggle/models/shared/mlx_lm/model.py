"""A model of mlx-lm with the weights of a folder, read as Waggle reads them: safetensors only, and no code of the model.

For `models/mlx_generic`, and for the export of what it trained. Imports MLX and a model module of mlx-lm.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.nn.layers.quantized import quantize
from mlx.utils import tree_flatten
from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.shared import weight_files
from waggle.models.shared.configuration.model_config import ANOTHER, EMBEDDING, HEAD
from waggle.models.shared.error_text import first_line
from waggle.models.shared.mlx_arrays import as_mlx
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm import corrections as mlx_lm_corrections
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules
from waggle.models.shared.mlx_lm import settings as mlx_lm_settings
from waggle.models.shared.mlx_lm import weights as mlx_lm_weights
from waggle.models.shared.mlx_lm.config import Quantization
from waggle.models.shared.weight_files import PACKED, STORED

COPY_AGAIN = Message("Copy or download it again.")
Arrays = dict[str, mx.array]
# What a module raises for settings and weights of a stranger that do not fit together.
REFUSALS = (TypeError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError, AssertionError, ZeroDivisionError)


@dataclasses.dataclass(frozen=True)
class Network:
    """A module of mlx-lm without weights, the weights under the module's names, and the names of matrices in the files.

    `sanitize` brings arrays under the names of the files into the form of the module.
    """

    module: Any
    weights: Arrays
    in_files: Mapping[str, str]
    sanitize: Callable[[Mapping[str, mx.array]], Arrays]


def load(folder: Path) -> Network:
    """A model for evaluation, its weights not yet computed. Raises ModelError and MLX's errors of memory."""
    table = mlx_lm_config.known_table(folder)
    stored = stored_arrays(folder)

    def sanitize(arrays: Mapping[str, mx.array]) -> Arrays:
        return _sanitized(build(folder, table, stored), table, arrays)  # some modules change with it, so that once is all

    module = build(folder, table, stored)
    try:
        weights = _sanitized(module, table, stored)
        _quantize(module, table, weights)
        in_files = _names_in_files(sanitize, stored)
    except REFUSALS as error:
        raise ModelError(Message("The model in %1 cannot be opened: %2.", folder, first_line(error)), ANOTHER) from error
    _require_complete(folder, module, weights)
    _require_tied(folder, stored, weights)
    module.eval()
    return Network(module, weights, in_files, sanitize)


def build(folder: Path, table: Mapping[str, Any], stored: Mapping[str, Any]) -> Any:
    """The module for a configuration. Its own weights are random, and are never computed. Raises ModelError."""
    kind = table["model_type"]
    try:
        library = mlx_lm_modules.model_module(kind)
    except ImportError as error:  # known, but for a newer MLX
        raise ModelError(Message("Models of type %1 need another version of MLX.", kind), "Install Waggle again.") from error
    try:
        settings = mlx_lm_settings.module_settings(table)
        settings.setdefault("tie_word_embeddings", HEAD not in stored)  # defaults differ between the libraries
        text = settings["text_config"] if isinstance(settings.get("text_config"), dict) else settings
        mlx_lm_settings.require_heeded(kind, mlx_lm_modules.MODULES.get(kind, kind), text, sorted(_fields(library)))
        module = library.Model(library.ModelArgs.from_dict(settings))
        mlx_lm_corrections.correct(kind, module, text)
        return module
    except ModelError:
        raise
    except REFUSALS as error:
        raise ModelError(Message("The model in %1 cannot be opened: %2.", folder, first_line(error)), ANOTHER) from error


def stored_arrays(folder: Path) -> Arrays:
    """The weights as the files have them. Raises ModelError."""
    try:
        arrays = weight_files.arrays_by_name(folder)
        for array in arrays.values():
            if array.precision not in STORED and array.precision not in PACKED:
                raise ModelError(
                    Message("Waggle does not know weights in %1.", array.precision), Message("It knows %1.", ", ".join(STORED))
                )
        return {name: as_mlx(array.read()) for name, array in arrays.items()}
    except (OSError, SafetensorError) as error:
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, error), COPY_AGAIN) from error


def _sanitized(module: Any, table: Mapping[str, Any], stored: Mapping[str, mx.array]) -> Arrays:
    """Weights of a file under the names and in the shapes of a module. Raises any of REFUSALS."""
    weights = mlx_lm_weights.prepared(table, stored)
    return dict(module.sanitize(weights)) if hasattr(module, "sanitize") else weights


def _names_in_files(sanitize: Callable[[Mapping[str, mx.array]], Arrays], stored: Mapping[str, mx.array]) -> dict[str, str]:
    """The names in the files of those matrices of a module that are one array there, as it is or transposed.

    Constants take the place of the weights, so nothing large is computed.
    """
    names = list(stored)
    constants = {
        name: mx.broadcast_to(mx.array(number, array.dtype if array.dtype == mx.uint32 else mx.float32), array.shape)
        for number, (name, array) in enumerate(stored.items())
    }
    corners = {name: (array[0, 0], array[-1, -1]) for name, array in sanitize(constants).items() if array.ndim == 2}
    mx.eval(corners)
    numbers = {name: (int(np.array(first)), int(np.array(last))) for name, (first, last) in corners.items()}
    return {name: names[first] for name, (first, last) in numbers.items() if first == last}


def dequantized(module: Any, weights: Mapping[str, mx.array]) -> Arrays:
    """All weights as plain numbers, with the packed ones computed; lazily."""
    plain = dict(weights)
    for name, layer in module.named_modules():
        if not hasattr(layer, "bits") or f"{name}.scales" not in plain:
            continue
        scales, biases = plain.pop(f"{name}.scales"), plain.pop(f"{name}.biases", None)
        plain[f"{name}.weight"] = mx.dequantize(
            plain[f"{name}.weight"], scales, biases, group_size=layer.group_size, bits=layer.bits, mode=layer.mode,
            dtype=None if biases is not None else mx.bfloat16,
        )  # fmt: skip
    return plain


def _fields(library: ModuleType) -> set[str]:
    """The settings that a model module reads, with those of the module whose text model it uses."""
    names: set[str] = set()
    for value in vars(library).values():
        if inspect.isclass(value) and dataclasses.is_dataclass(value):
            names |= {field.name for field in dataclasses.fields(value)}
        elif isinstance(value, ModuleType) and value.__name__.startswith("mlx_lm.models.") and hasattr(value, "ModelArgs"):
            names |= _fields(value)
    return names


def _quantize(module: Any, table: Mapping[str, Any], weights: Mapping[str, mx.array]) -> None:
    """Replace the layers whose weights are packed. Raises ValueError and ModelError."""
    usual, others = mlx_lm_config.quantization(table)
    if usual is None:
        return

    def packing(name: str, layer: Any) -> bool | dict[str, Any]:
        chosen: Quantization | None = others.get(name, usual)
        if chosen is None or not hasattr(layer, "to_quantized") or f"{name}.scales" not in weights:
            return False
        if f"{name}.global_scale" in weights:
            raise ValueError(Message("%1 has a scale of its own", name))
        return {"group_size": chosen.group_size, "bits": chosen.bits, "mode": chosen.mode}

    quantize(module, usual.group_size, usual.bits, mode=usual.mode, class_predicate=packing)


def _require_complete(folder: Path, module: Any, weights: Mapping[str, mx.array]) -> None:
    """Raise ModelError unless the weights are those of the module."""
    shapes = {name: tuple(weight.shape) for name, weight in _parameters(module)}
    problem = ""
    if missing := sorted(shapes.keys() - weights.keys()):
        problem = f"{missing[0]} is not there"
    elif unknown := sorted(weights.keys() - shapes.keys()):
        problem = f"mlx-lm does not know {unknown[0]}"
    else:
        for name, shape in shapes.items():
            if tuple(weights[name].shape) != shape:
                problem = f"{name} is {list(weights[name].shape)}, and its config.json says {list(shape)}"
    if problem:
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, problem), COPY_AGAIN)


def _parameters(module: Any) -> list[tuple[str, mx.array]]:
    flat: Any = tree_flatten(module.parameters())
    return list(flat)


def _require_tied(folder: Path, stored: Mapping[str, mx.array], weights: Mapping[str, mx.array]) -> None:
    """Raise ModelError if a head was left out as a copy of the embedding, and is none."""
    if HEAD not in stored or any(name.endswith(HEAD) for name in weights):
        return
    head = stored[HEAD]
    same = [other for name, other in stored.items() if name != HEAD and other.shape == head.shape]
    if (same or EMBEDDING in stored) and not any(bool(np.array(mx.array_equal(head, other))) for other in same):
        raise ModelError(Message("The model in %1 cannot be read: its head is not its embedding, as it says.", folder), ANOTHER)
