"""A model of transformers with the weights of a folder, read as Waggle reads them: safetensors only, and no code of the model.

For `models/generic`, and for the export of what it trained. Imports torch and transformers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError

from waggle.core.errors import MemoryShort, ModelError
from waggle.core.message import Message
from waggle.models.shared import weight_files
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.models.shared.error_text import first_line
from waggle.models.shared.generic_config import transformers_config
from waggle.models.shared.weight_files import STORED, StoredArray, is_bits

COPY_AGAIN = Message("Copy or download it again.")
DTYPES: Mapping[str, torch.dtype] = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def load(folder: Path, precision: torch.dtype) -> Any:
    """A model in a precision, on the CPU, for evaluation. Raises ModelError, MemoryShort and torch's errors of memory."""
    model_class, config = _class_and_config(folder)
    try:
        arrays = weight_files.arrays_by_name(folder)
        stored = {name: _tensor(array.read()) for name, array in arrays.items() if array.precision in STORED}
    except (OSError, SafetensorError) as error:
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, error), COPY_AGAIN) from error
    try:
        model, report = model_class.from_pretrained(
            None, config=config, state_dict=stored, dtype=precision, output_loading_info=True, ignore_mismatched_sizes=True,
            attn_implementation="sdpa" if model_class._supports_sdpa else "eager",
        )  # fmt: skip
    except (torch.OutOfMemoryError, MemoryError, MemoryShort, RuntimeError):
        raise
    except Exception as error:  # a stranger's numbers, in any of transformers' models
        raise ModelError(Message("The model in %1 cannot be opened: %2.", folder, first_line(error)), ANOTHER) from error
    _require_complete(folder, model, report, arrays)
    _require_tied(folder, model, stored)
    return model.eval()


def require_complete(folder: Path, arrays: Mapping[str, StoredArray]) -> None:
    """Raise ModelError if a weight of the model is missing or has another shape, by the headers of its files: loads no weight."""
    model_class, config = _class_and_config(folder)
    stored = {
        name: torch.empty(array.shape, dtype=DTYPES[array.precision], device="meta")
        for name, array in arrays.items()
        if array.precision in STORED
    }
    try:
        model, report = model_class.from_pretrained(
            None, config=config, state_dict=stored, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True,
            attn_implementation="eager", device_map="meta",
        )  # fmt: skip
    except MemoryError:
        raise
    except RuntimeError as error:  # weights that transformers joins to one, such as experts: some are missing
        raise ModelError(
            Message("The weights of the model in %1 are not those that its config.json says.", folder), COPY_AGAIN
        ) from error
    except Exception as error:  # a stranger's numbers, in any of transformers' models
        raise ModelError(Message("The model in %1 cannot be opened: %2.", folder, first_line(error)), ANOTHER) from error
    _require_complete(folder, model, report, arrays)


def _class_and_config(folder: Path) -> tuple[Any, Any]:
    """The class of a model, and its configuration; of a model for texts and pictures those of its part for texts."""
    config = transformers_config(folder)
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    text_class = config.sub_configs.get("text_config")
    is_part = text_class is not None and model_class.config_class == text_class
    return model_class, config.get_text_config() if is_part else config


def in_files(model: Any) -> dict[str, torch.Tensor]:
    """The weights of a model under the names and in the shapes that its files have, each once."""
    from transformers.core_model_loading import revert_weight_conversion

    tied = set(model.all_tied_weights_keys)
    parameters = {name: weight.detach() for name, weight in model.state_dict().items() if name not in tied}
    result: dict[str, torch.Tensor] = revert_weight_conversion(model, parameters)
    return result


def _tensor(values: NDArray[Any]) -> torch.Tensor:
    """A tensor over the same memory; bits of bfloat16 become bfloat16."""
    result = torch.from_numpy(values)
    return result.view(torch.bfloat16) if is_bits(values) else result


def _require_complete(folder: Path, model: Any, report: Mapping[str, Any], arrays: Mapping[str, StoredArray]) -> None:
    """Raise ModelError if a weight is missing, or is another than the configuration says."""
    for name, stored, expected in report["mismatched_keys"]:
        problem = f"{name} is {list(stored)}, and its config.json says {list(expected)}"
        raise ModelError(Message("The model in %1 cannot be read: %2.", folder, problem), COPY_AGAIN)
    tied = model.all_tied_weights_keys
    missing = sorted(name for name in report["missing_keys"] if tied.get(name) in (None, *report["missing_keys"]))
    if not missing:
        return
    for precision in {array.precision for array in arrays.values()} - STORED.keys():
        raise ModelError(Message("Waggle does not know weights in %1.", precision), Message("It knows %1.", ", ".join(STORED)))
    raise ModelError(Message("The model in %1 cannot be read: %2 is not there.", folder, missing[0]), COPY_AGAIN)


def _require_tied(folder: Path, model: Any, stored: Mapping[str, torch.Tensor]) -> None:
    """Raise ModelError if two weights that should be one differ in the files."""
    tied = (model._tied_weights_keys or {}) if getattr(model.config.get_text_config(), "tie_word_embeddings", False) else {}
    for name, other in tied.items():  # transformers itself would keep both
        if name in stored and other in stored and not torch.equal(stored[name], stored[other]):
            raise ModelError(
                Message("The model in %1 cannot be read: its head is not its embedding, as it says.", folder), ANOTHER
            )
