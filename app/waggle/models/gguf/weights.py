"""The weights of a GGUF file under transformers' names, de-quantised a tensor at a time. For a process of its own.

Names and transformations are transformers' own: an older reader has them by architecture as "processors", a newer one as lists of
renamings and operations. Both of them hold all tensors in memory; here each is read, transformed, and passed on.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waggle.core.message import Message
from waggle.models.gguf.configuration import ROPE_FACTORS
from waggle.models.gguf.header import DamagedError, Header, Tensor, UnreadableError
from waggle.models.shared.weight_files import STORED

LARGE = ("token_embd.weight", "output.weight")  # never transformed, except where rows and columns are exchanged
SKIPPED = "mtp."  # predicts several tokens at once: transformers has no such layers
PIECE = 1 << 22  # numbers that are de-quantised at once
PLAIN = {0: "F32", 1: "F16", 30: "BF16"}  # precisions without blocks, as ggml numbers and safetensors calls them
AS_STORED = (0, 1)  # of them, those that de-quantising takes as numbers and not as bytes
Transform = Callable[[NDArray[np.float32]], NDArray[Any]]


@dataclass(frozen=True)
class Weight:
    """A weight of the model: its shape and precision (in the terms of safetensors), and the tensor that it is read from."""

    shape: tuple[int, ...]
    precision: str
    source: Tensor
    transform: Transform | None  # None: rows can be read in pieces


def precision_of(header: Header) -> str:
    """The precision of the model: its matrices' own if they have no blocks, else bfloat16."""
    kinds = {tensor.kind for tensor in header.tensors.values() if len(tensor.shape) > 1}
    return PLAIN[kinds.pop()] if len(kinds) == 1 and kinds <= PLAIN.keys() else "BF16"


def plan(header: Header, config: Any) -> dict[str, Weight]:
    """All weights by transformers' name. Raises UnreadableError if tensors are missing, superfluous or of another shape."""
    model = _empty_model(config)
    shapes = {name: tuple(each.shape) for name, each in model.named_parameters()}  # tied weights once
    persistent = model.state_dict().keys()
    shapes |= {name: tuple(each.shape) for name, each in model.named_buffers() if name in persistent}
    precision, weights = precision_of(header), {}
    for source, name, transform in _names(header, config, model):
        if name not in shapes or name in weights:
            raise UnreadableError(Message("it has a tensor %1, which transformers does not read", source.name[:80]))
        shape = shapes[name]
        if math.prod(source.shape) != math.prod(shape):
            raise UnreadableError(Message("it has a tensor %1 of a shape that does not fit the others", source.name[:80]))
        plain = source.name in LARGE and source.shape == shape
        weights[name] = Weight(shape, precision, source, None if plain else transform)
    if missing := shapes.keys() - weights.keys():
        raise UnreadableError(Message("it has no tensor for %1", min(missing)))
    return weights


def _empty_model(config: Any) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    return model


def _names(header: Header, config: Any, model: Any) -> Iterator[tuple[Tensor, str, Transform]]:
    """Each tensor, the name of its weight, and how it is transformed."""
    from transformers.integrations.gguf import is_gguf_arch_supported

    tensors = [tensor for tensor in header.tensors.values() if tensor.name != ROPE_FACTORS]
    renamed = _by_operations if is_gguf_arch_supported(header.architecture) else _by_processor
    yield from renamed(header.architecture, tensors, config, model)


def _by_processor(architecture: str, tensors: list[Tensor], config: Any, model: Any) -> Iterator[tuple[Tensor, str, Transform]]:
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor

    settings = {name: getattr(config, name, None) for name in ("num_attention_heads", "num_key_value_heads")}
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=settings)
    names = _labels(architecture, config.num_hidden_layers, model)
    for tensor in tensors:

        def transform(numbers: NDArray[np.float32], label: str = tensor.name) -> NDArray[Any]:
            direct: dict[str, Any] = {}  # some processors put their result there
            result = processor.process(
                weights=numbers, name=label, tensor_key_mapping=names, parsed_parameters={"tensors": direct}
            )
            return np.asarray(next(iter(direct.values())).numpy() if direct else result.weights)

        yield tensor, names.get(tensor.name, ""), transform


def _labels(architecture: str, layers: int, model: Any) -> dict[str, str]:
    """transformers' name of a weight by its label in the file. Some labels are known for the model without its head only."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    known = get_tensor_name_map(next(arch for arch, name in MODEL_ARCH_NAMES.items() if name == architecture), layers)
    names: dict[str, str] = {}
    for prefix in ("", f"{model.base_model_prefix}."):
        for name in model.state_dict():
            if name.startswith(prefix) and (label := known.get_name(name.removeprefix(prefix), (".weight", ".bias"))) is not None:
                names.setdefault(label, name)
    return names


def _by_operations(architecture: str, tensors: list[Tensor], config: Any, _model: Any) -> Iterator[tuple[Tensor, str, Transform]]:
    import torch
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
    from transformers.integrations.gguf import get_gguf_conversion_mapping

    rules = get_gguf_conversion_mapping(architecture, config)
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    by_pattern = {pattern: rule for rule in converters for pattern in rule.source_patterns}
    for tensor in tensors:
        name, pattern = rename_source_key(tensor.name, renamings, converters)
        if name.startswith(SKIPPED):
            continue

        operations = by_pattern[pattern].operations if pattern in by_pattern else ()

        def transform(numbers: NDArray[np.float32], name: str = name, operations: Any = operations) -> NDArray[Any]:
            value = torch.from_numpy(numbers)
            for operation in operations:
                (value,) = operation.convert({name: value}, [name], [name]).values()
            return np.asarray(value.numpy())

        yield tensor, name, transform


def read(path: Path, weight: Weight) -> Iterator[NDArray[Any]]:
    """The numbers of a weight in its precision, in pieces, in the order of a file. Raises OSError and UnreadableError."""
    if weight.transform is None:
        for piece in _rows(path, weight.source):
            yield _rounded(piece, weight.precision).reshape(-1)
        return
    whole = np.concatenate(list(_rows(path, weight.source))).reshape(weight.source.shape)
    transformed = weight.transform(whole)
    if transformed.shape != weight.shape:
        raise UnreadableError(Message("it has a tensor %1 of a shape that does not fit the others", weight.source.name[:80]))
    yield from np.array_split(_rounded(transformed, weight.precision).reshape(-1), -(-transformed.size // PIECE))


def _rows(path: Path, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
    """Some rows (N, columns) at a time, as float32."""
    from gguf import GGMLQuantizationType, dequantize

    columns, rows = tensor.shape[-1], math.prod(tensor.shape[:-1])
    step = max(1, PIECE // columns)
    kind = GGMLQuantizationType(tensor.kind)
    with path.open("rb") as file:  # numpy's own reading duplicates the descriptor, which the filter of system calls refuses
        file.seek(tensor.offset)
        for first in range(0, rows, step):
            content = file.read(min(step, rows - first) * tensor.row_bytes)
            packed = np.frombuffer(content, STORED[PLAIN[tensor.kind]] if tensor.kind in AS_STORED else np.uint8)
            if len(content) < min(step, rows - first) * tensor.row_bytes:
                raise DamagedError("it became shorter")
            with np.errstate(all="ignore"):  # damaged scales: opening the model looks for numbers that are not finite
                yield dequantize(packed.reshape(min(step, rows - first), -1), kind).astype(np.float32, copy=False)


def _rounded(numbers: NDArray[np.float32], precision: str) -> NDArray[Any]:
    """Rounded to the nearest number of a precision; bfloat16 as its bits."""
    import torch

    if precision != "BF16":
        with np.errstate(over="ignore"):
            return numbers.astype(STORED[precision])
    return np.asarray(torch.from_numpy(np.ascontiguousarray(numbers)).to(torch.bfloat16).view(torch.uint16).numpy())


def rope_factors(path: Path, header: Header) -> NDArray[np.float32] | None:
    """The tensor ROPE_FACTORS (head_dim / 2,), if the file has it."""
    tensor: Mapping[str, Tensor] = header.tensors
    return np.concatenate(list(_rows(path, tensor[ROPE_FACTORS]))).reshape(-1) if ROPE_FACTORS in tensor else None
