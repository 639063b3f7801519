"""Export of a model that mlx-lm computes: its own files again, under the names and in the forms that other programs expect.

mlx-lm's `sanitize` renames, transposes, splits and stacks the arrays of a file. That is a linear function which loses nothing, so
its transpose, which MLX computes as a gradient, brings what was learned back into the form of the file.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ExportError
from waggle.models.shared import lora, weight_files
from waggle.models.shared.configuration.model_config import HEAD
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm import model as mlx_lm_model
from waggle.models.shared.mlx_lm.model import Arrays, Network
from waggle.models.storage import export_precision
from waggle.models.storage.checkpoint import ADAPTERS

PRECISIONS = {mx.float32: "F32", mx.bfloat16: "BF16", mx.float16: "F16"}
SAME = 1e-3  # the relative difference of two lengths that should be equal


def write_model(base: Path, checkpoint: Path, folder: Path, *, adapted: bool) -> None:
    """Write the weights of a checkpoint, and a configuration with their precision. Adapters are added to the base's weights.

    A quantised base is written in plain numbers. Raises ModelError, ExportError, OSError and SafetensorError.
    """
    table = mlx_lm_config.known_table(base)
    network = mlx_lm_model.load(base)
    learned = {name: mx.array(weight_files.as_fp32(array)) for name, array in _learned(checkpoint, adapted=adapted).items()}
    if mlx_lm_config.is_packed(table):
        plain = mlx_lm_model.dequantized(network.module, network.weights)
        changes = _changes(network, learned, plain, adapted=adapted)
        weights = {network.in_files.get(name, name): (plain[name], changes.get(name)) for name in plain}
        precision = _most([weight for weight, _ in weights.values()])
        table = {name: value for name, value in table.items() if name not in ("quantization", "quantization_config")}
    else:
        stored = mlx_lm_model.stored_arrays(base)
        weights = _in_files(network, stored, _changes(network, learned, network.weights, adapted=adapted))
        precision = _most(list(stored.values())) if adapted else "F32"
    _write(folder / weight_files.WEIGHTS, weights, precision)
    content = json.dumps(export_precision.named_in(table, precision), indent=2)
    (folder / "config.json").write_text(content, encoding="utf-8")


def _learned(checkpoint: Path, *, adapted: bool) -> dict[str, NDArray[Any]]:
    return weight_files.load(checkpoint / (ADAPTERS if adapted else weight_files.WEIGHTS))


def _changes(network: Network, learned: Mapping[str, mx.array], before: Mapping[str, mx.array], *, adapted: bool) -> Arrays:
    """What was learned, as differences (fp32) of the weights of the module; lazily."""
    if not adapted:
        return {name: weight - before[name].astype(mx.float32) for name, weight in learned.items() if name in before}
    changes: Arrays = {}
    for name in before:
        path = name.removesuffix(".weight")
        a_name, b_name = lora.names(network.in_files.get(name, name).removesuffix(".weight"))
        if path != name and a_name in learned:
            changes[name] = lora.SCALE * (learned[b_name] @ learned[a_name])
    return changes


def _in_files(network: Network, stored: Arrays, changes: Arrays) -> dict[str, tuple[mx.array, mx.array | None]]:
    """The arrays of the files, each with its change. Raises ExportError."""
    plain = [name for name, array in stored.items() if mx.issubdtype(array.dtype, mx.floating)]
    changed = sorted(changes)

    def forward(*arrays: mx.array) -> list[mx.array]:
        weights = network.sanitize(stored | dict(zip(plain, arrays, strict=True)))
        return [weights[name] for name in changed]

    _, backs = mx.vjp(forward, [stored[name].astype(mx.float32) for name in plain], [changes[name] for name in changed])
    result: dict[str, tuple[mx.array, mx.array | None]] = {name: (array, None) for name, array in stored.items()}
    lengths = [0.0, 0.0]
    for name in changed:
        lengths[0] += float((changes[name] * changes[name]).sum())
    for name, back in zip(plain, backs, strict=True):
        lengths[1] += float((back * back).sum())
        result[name] = (stored[name], back)
    if not math.isclose(*lengths, rel_tol=SAME, abs_tol=1e-30):
        raise ExportError("This kind of model cannot be exported: its weights have another form here.", "It can be trained.")
    return _with_tied_head(result, network)


def _with_tied_head(
    arrays: dict[str, tuple[mx.array, mx.array | None]], network: Network
) -> dict[str, tuple[mx.array, mx.array | None]]:
    """A head that is a copy of the embedding in the files stays one."""
    if HEAD in arrays and not any(name.endswith(HEAD) for name in network.weights):
        head = arrays[HEAD][0]
        for name, (array, change) in arrays.items():
            if name != HEAD and array.shape == head.shape and bool(np.array(mx.array_equal(array, head))):
                return arrays | {HEAD: (head, change)}
    return arrays


def _most(arrays: list[mx.array]) -> str:
    """The precision of most of these numbers."""
    return export_precision.most_common((PRECISIONS.get(array.dtype, ""), array.size) for array in arrays)


def _write(path: Path, weights: Mapping[str, tuple[mx.array, mx.array | None]], precision: str) -> None:
    """Write arrays plus their changes, one at a time, rounded stochastically."""
    shapes = {name: (precision, tuple(array.shape)) for name, (array, _) in weights.items() if array.dtype in PRECISIONS}

    def rounded(name: str) -> NDArray[Any]:
        array, change = weights[name]
        whole = array.astype(mx.float32) if change is None else array.astype(mx.float32) + change
        return export_precision.rounded(name, np.array(whole), precision)

    each: Callable[[str], NDArray[Any]] = rounded
    weight_files.write(path, shapes, each)
