"""Checks whether a model can be trained here, before it takes the place of the one in training."""

from pathlib import Path

from msgspec.structs import replace

from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.counted_config import CountedConfig
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.storage import hub_download


def configuration_of(folder: Path) -> ModelConfig:
    """The configuration of a model, complete or being downloaded, with its number of weights. Raises ModelError."""
    model = generic_config.read_any(folder)
    weights = hub_download.planned_weights(folder)
    return replace(model, counted=weights) if weights and isinstance(model, CountedConfig) else model


def check_configuration(folder: Path, machine: DeviceCapacity, chosen: Settings) -> None:
    """Raise ModelError if a model whose configuration was inspected cannot be trained here."""
    model_fit.fit_model(machine, configuration_of(folder), chosen)
