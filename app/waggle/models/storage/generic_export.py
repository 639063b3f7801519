"""Export of a model that transformers computes: its own files again, under the names that other programs expect."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.models.shared import lora, transformers_model, weight_files
from waggle.models.shared.configuration import model_config
from waggle.models.storage import export_precision
from waggle.models.storage.checkpoint import ADAPTERS


def write_model(base: Path, checkpoint: Path, folder: Path, *, adapted: bool) -> None:
    """Write the weights of a checkpoint, and a configuration with their precision. Adapters are added to the base's weights.

    Raises ModelError, OSError and SafetensorError.
    """
    model = transformers_model.load(base, torch.float32)
    learned_from = base if adapted else checkpoint
    precision = _precision(learned_from)
    learned = weight_files.load(checkpoint / (ADAPTERS if adapted else weight_files.WEIGHTS))
    if adapted:
        _add_adapters(model, learned)
    else:
        parameters = dict(model.named_parameters()) | dict(model.named_buffers())
        with torch.no_grad():
            for name, array in learned.items():
                parameters[name].copy_(torch.from_numpy(weight_files.as_fp32(array)))
    tensors = {name: weight for name, weight in transformers_model.in_files(model).items() if weight.is_floating_point()}

    def rounded(name: str) -> NDArray[Any]:
        return export_precision.rounded(name, tensors[name].contiguous().numpy().astype(np.float32), precision)

    shapes = {name: (precision, tuple(weight.shape)) for name, weight in tensors.items()}
    weight_files.write(folder / weight_files.WEIGHTS, shapes, rounded)
    table = model_config.table_of(base)
    if table.get("model_type") != model.config.model_type:  # only the text model of one for texts and pictures was trained
        table = json.loads(model.config.to_json_string())
    content = json.dumps(export_precision.named_in(table, precision), indent=2)
    (folder / "config.json").write_text(content, encoding="utf-8")


def _precision(folder: Path) -> str:
    """The precision of most of the weights in a folder."""
    arrays = weight_files.arrays_by_name(folder).values()
    return export_precision.most_common((array.precision, math.prod(array.shape)) for array in arrays)


def _add_adapters(model: Any, adapters: dict[str, NDArray[Any]]) -> None:
    from transformers.pytorch_utils import Conv1D

    with torch.no_grad():
        for name, module in model.named_modules():
            a_name, b_name = lora.names(name)
            if a_name in adapters:
                change = lora.SCALE * torch.from_numpy(adapters[b_name] @ adapters[a_name])
                module.weight += change.T if isinstance(module, Conv1D) else change
