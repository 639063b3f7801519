"""Fits the chosen model to this computer: how it can be trained here, before it is downloaded and when it is opened."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from waggle.core.errors import ModelError
from waggle.core.settings import Settings
from waggle.models import backend, memory_fit
from waggle.models.memory_fit import DeviceCapacity, MemoryFit, Workload
from waggle.models.shared import model_config
from waggle.models.shared.model_config import ModelConfig
from waggle.models.shared.training_mode import Method

STARTER_ANSWER_TOKENS = 24  # tokens: the longest answer to the starter's questions has 22
DEFAULT_ANSWER_TOKENS = 160  # of other models, who think before they answer


def measure_machine(chosen: Settings) -> DeviceCapacity:
    """The memory and speed that training may use, by a short benchmark. Call it in the thread that will use the device."""
    device = backend.choose_device(chosen.computer.device)
    machine = memory_fit.measure(device.backend, device.device, backend.threads_for(chosen.computer.threads))
    allowed = chosen.computer.memory_gb
    return replace(machine, free=min(machine.free, int(allowed * 1e9))) if allowed else machine


def fit_model(
    machine: DeviceCapacity,
    model: ModelConfig,
    chosen: Settings,
    settled: Method | None = None,
    divided: Callable[[int], int] = int,
) -> MemoryFit:
    """How a model is trained there: as chosen, else as it was so far, else as fits. Raises ModelError where nothing fits.

    `divided` says into how many parts work is divided of which so many fit.
    """
    method, precision = chosen.model.training, chosen.model.precision
    if settled == "lean" and machine.backend == "MLX":  # MLX has no lean way: it continues with full training
        settled = "full"

    def as_trained(method: Method | None) -> MemoryFit:
        return memory_fit.choose(
            model, machine, _work(chosen, model), method=method, precision=None if precision == "auto" else precision
        )

    fit = as_trained(settled if method == "auto" else method)
    if method == "auto" and settled == "full" and not fit.fits and machine.backend != "MLX":
        leaner = as_trained("lean")  # which goes on from the same saved state: less is free than there was
        fit = leaner if leaner.fits else fit
    return replace(fit, training=replace(fit.training, parts=divided(fit.training.parts)))


def fit_sentence(machine: DeviceCapacity, chosen: Settings, folder: Path) -> str:
    """Whether the model in a folder fits, in one sentence, and behind it how; empty where its configuration is not there."""
    try:
        model = model_config.read(folder)
    except ModelError:
        return ""
    try:
        return fit_model(machine, model, chosen).sentence
    except ModelError as error:
        return error.title


def require_fit(folder: Path, chosen: Settings) -> None:
    """Raise ModelError for a model that cannot be trained here, of which only the configuration is there."""
    fit_model(measure_machine(chosen), model_config.read(folder), chosen)


def answer_limit(chosen: Settings, model: ModelConfig) -> int:
    """Tokens an answer may have: half of what the model can read at a time is the question's."""
    limit = chosen.learning.max_new_tokens or (STARTER_ANSWER_TOKENS if memory_fit.is_small(model) else DEFAULT_ANSWER_TOKENS)
    return min(limit, max(1, model.max_position_embeddings // 2))


def learning_rate(chosen: Settings, model: ModelConfig, method: Method) -> float:
    return chosen.learning.learning_rate or memory_fit.rate_for(model, method)


def _work(chosen: Settings, model: ModelConfig) -> Workload:
    learning = chosen.learning
    return Workload(learning.questions, learning.local + learning.external, learning.group_size, answer_limit(chosen, model))
