"""Fits the chosen model to this computer: decides how it can be trained, before a download and when it is opened."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from waggle.core.errors import ModelError
from waggle.core.message import NOTHING, Message
from waggle.core.settings import Settings
from waggle.models import backend, memory_fit
from waggle.models.memory_fit import DeviceCapacity, MemoryFit, Workload
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.suggested_models import SuggestedModel, suggested_models
from waggle.models.shared.training_mode import Method, TrainingMode

STARTER_ANSWER_TOKENS = 24  # the longest answer to the starter's questions has 22
DEFAULT_ANSWER_TOKENS = 160  # other models think before they answer
QUESTIONS = (8, 6, 4)  # of a round, the most that a computer manages in time. A real model learned from four groups a step
ROUND_S = 120.0  # seconds that a round may take
ROOMY_SHARE = 0.7  # of the free memory: a model that needs no more is offered at the first start
FAST_ENOUGH = 400  # answers an hour of a model that is offered at the first start: some six rounds


@dataclass(frozen=True)
class FitVerdict:
    """Whether a model fits, in one sentence and in numbers.

    `roomy`: all of its weights are trained, and what that needs leaves memory for other programs.
    """

    sentence: Message
    fits: bool
    roomy: bool = False
    answers_an_hour: int = 0


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
    parts_for: Callable[[int], int] = int,
) -> MemoryFit:
    """How to train a model: by the method of the settings, else by that of its checkpoints, else by one that fits.

    `parts_for` takes the parts that fit by measurement, and returns the parts to use. Raises ModelError if nothing fits.
    """
    method, precision = chosen.model.training, chosen.model.precision
    if settled == "lean" and machine.backend == "MLX":  # MLX has no lean training: continue with full training
        settled = "full"
    if settled == "qlora" and machine.backend == "MLX":  # nor layers in 4 bits: the adapters go on over whole ones
        settled = "lora"

    def fit_for(method: Method | None) -> MemoryFit:
        return memory_fit.choose(
            model, machine, _workload(chosen, model), method=method, precision=None if precision == "auto" else precision
        )

    fit = fit_for(settled if method == "auto" else method)
    if method == "auto" and settled == "full" and not fit.fits and machine.backend != "MLX":
        leaner = fit_for("lean")  # it continues from the same checkpoint; there is less free memory than before
        fit = leaner if leaner.fits else fit
    return replace(fit, training=replace(fit.training, parts=parts_for(fit.training.parts)))


def fit_sentence(machine: DeviceCapacity, chosen: Settings, folder: Path) -> Message:
    """Whether and how the model in a folder fits, in one sentence; empty if it has no configuration yet."""
    try:
        model = generic_config.read_any(folder)
    except ModelError:
        return NOTHING
    return verdict(machine, chosen, model).sentence


def verdict(machine: DeviceCapacity, chosen: Settings, model: ModelConfig) -> FitVerdict:
    """Whether and how a model fits."""
    try:
        fit = fit_model(machine, model, chosen)
    except ModelError as error:
        return FitVerdict(error.title, fits=False)
    roomy = fit.fits and fit.training.method == "full" and fit.needs <= ROOMY_SHARE * fit.free
    return FitVerdict(fit.sentence, fit.fits, roomy, fit.answers_an_hour)


def too_large(machine: DeviceCapacity, weights: int) -> Message:
    """Why a model with so many weights can never fit, if it cannot: they alone need too much memory. Else empty."""
    least = memory_fit.PROGRAM_BYTES + memory_fit.BYTES["bfloat16"] * weights
    if least <= machine.free * memory_fit.USABLE_SHARE:
        return NOTHING
    return memory_fit.too_large(least, machine.free)


def suggestions(machine: DeviceCapacity, chosen: Settings) -> list[tuple[SuggestedModel, FitVerdict]]:
    """The models that Waggle suggests, smallest first, each with whether it fits."""
    return [(model, verdict(machine, chosen, model.configuration)) for model in suggested_models()]


def first_choice(judged: Iterable[tuple[SuggestedModel, FitVerdict]]) -> SuggestedModel | None:
    """The largest model that is offered at the first start: with room to spare, fast enough, and free for everybody."""
    suits = [model for model, fit in judged if fit.roomy and fit.answers_an_hour >= FAST_ENOUGH and not model.gated]
    return suits[-1] if suits else None


def require_fit(folder: Path, chosen: Settings) -> None:
    """Raise ModelError if a model cannot be trained here. It needs the model's configuration only."""
    fit_model(measure_machine(chosen), generic_config.read_any(folder), chosen)


def answer_limit(chosen: Settings, model: ModelConfig) -> int:
    """The most tokens of a completion; half of the model's context is for the question."""
    limit = chosen.learning.max_new_tokens or (STARTER_ANSWER_TOKENS if memory_fit.is_small(model) else DEFAULT_ANSWER_TOKENS)
    return min(limit, max(1, model.max_position_embeddings // 2))


def questions_a_round(chosen: Settings, model: ModelConfig, machine: DeviceCapacity, training: TrainingMode, longest: int) -> int:
    """As the settings say; else the usual number, or fewer if a round with answers of up to `longest` tokens takes too long.

    A person who chose how many groups are learned from gets the usual number.
    """
    learning, usual = chosen.learning, Settings().learning
    sizes = (learning.questions, learning.local, learning.external)
    if memory_fit.is_small(model) or sizes != (usual.questions, usual.local, usual.external):
        return learning.questions
    for count in QUESTIONS:
        work = Workload(count, count, learning.group_size, longest)
        if memory_fit.round_seconds(model, machine, work, training) <= ROUND_S:
            return count
    return QUESTIONS[-1]


def learning_rate(chosen: Settings, model: ModelConfig, method: Method) -> float:
    return chosen.learning.learning_rate or memory_fit.rate_for(model, method)


def _workload(chosen: Settings, model: ModelConfig) -> Workload:
    learning = chosen.learning
    return Workload(learning.questions, learning.local + learning.external, learning.group_size, answer_limit(chosen, model))
