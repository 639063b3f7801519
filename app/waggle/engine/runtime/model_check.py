"""Checks a model before it takes the place of the one in training: what is known before a download, then its whole folder."""

from pathlib import Path

from msgspec.structs import replace
from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.models import tokenizer
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared import generic_config, weight_files
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.model_config import ModelConfig
from waggle.models.storage import hub_download


def configuration_of(folder: Path) -> ModelConfig:
    """The configuration of a model, complete or being downloaded, with its number of weights. Raises ModelError."""
    model = generic_config.read_any(folder)
    weights = hub_download.planned_weights(folder)
    return replace(model, counted=weights) if weights and isinstance(model, GenericConfig) else model


def check_configuration(folder: Path, machine: DeviceCapacity, chosen: Settings) -> None:
    """Raise ModelError if a model cannot be trained here. Its configuration is enough."""
    model_fit.fit_model(machine, configuration_of(folder), chosen)


def check_folder(folder: Path, machine: DeviceCapacity, chosen: Settings) -> None:
    """Raise ModelError if a folder has no complete model that can be trained here.

    Reads its configuration, its tokenizer with the chat template, and the headers of its weights.
    """
    model = configuration_of(folder)
    model_fit.fit_model(machine, model, chosen)
    tokenizer.load(folder, rows=model.vocab_size)
    try:
        if isinstance(model, GenericConfig):
            weight_files.arrays_by_name(folder)
        else:
            weight_files.of_model(folder, model.weights())
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The model in {folder} cannot be read: {error}.", "Copy or download it again.") from error
