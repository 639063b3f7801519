"""Open a policy on the best device, and say which and why. Importing this module imports no backend."""

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

from waggle.core import cuda_download
from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.system.machine import usable_cores
from waggle.models import memory_fit
from waggle.models.shared import generic_config
from waggle.models.shared.apple_silicon import is_apple_silicon
from waggle.models.shared.finite_rows import require_finite
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.mlx_lm.config import MlxLmConfig
from waggle.models.shared.pulse import require_pulse
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.tokenizer import Tokenizer
from waggle.models.tokenizer import load as load_tokenizer
from waggle.rl.batch import nothing

if TYPE_CHECKING:
    from waggle.models.generic.policy import GenericPolicy
    from waggle.models.mlx.policy import MlxPolicy
    from waggle.models.mlx_generic.policy import MlxLmPolicy
    from waggle.models.torch.policy import TorchPolicy

RIGHT = [[3.0], [12.0]]  # [[0, 1, 2], [3, 4, 5]] times a column of ones
WRONG = "a product of two small matrices came out wrong"


@dataclass(frozen=True)
class OpenedPolicy:
    """A policy with its tokenizer and device. Use it only in the thread that opened it."""

    policy: Union["TorchPolicy", "GenericPolicy", "MlxPolicy", "MlxLmPolicy"]
    tokenizer: Tokenizer
    backend: str
    device: str
    reason: Message
    threads: int


@dataclass(frozen=True)
class DeviceChoice:
    """The backend and device that compute, and the reason."""

    backend: str
    device: str
    reason: Message


def threads_for(chosen: int) -> int:
    """How many cores to use: `chosen`, or if that is 0 a quarter of them, so that the computer stays responsive."""
    cores = usable_cores()
    return min(chosen, cores) if chosen else max(1, cores // 4)


def use_threads(count: int) -> None:
    """Set the number of torch's threads. Call it in the policy's thread, after a torch policy was opened."""
    import torch

    torch.set_num_threads(count)


def release_memory() -> None:
    """Free the memory of policies that are no longer used: the fit of the next one depends on free memory."""
    gc.collect()  # engine and pause gate form a reference cycle
    if sys.modules.get("torch"):  # None if its import is blocked
        from waggle.models.torch.memory import give_back_on_cards

        give_back_on_cards()


def open_policy(
    folder: Path, *, device: str, threads: int, training: TrainingMode | None = None, short: Callable[[str], None] = nothing
) -> OpenedPolicy:
    """Load a model folder. Imports torch, which takes seconds, or MLX, which does not. Raises ModelError and MemoryShort.

    What the fast path does not compute (other models, and layers in 4 bits) is opened with mlx-lm where MLX computes, else with
    transformers on torch.

    `short` is called with one sentence whenever memory ran short, so that batches are smaller from then on.
    """
    configuration = generic_config.read_any(folder, mlx=device == "mlx" or None)
    tokenizer = load_tokenizer(folder, rows=configuration.vocab_size)  # MLX checks no bounds: larger ids may crash
    policy: TorchPolicy | GenericPolicy | MlxPolicy | MlxLmPolicy
    training, choice = training or TrainingMode(), choose_device(device)
    memory_fit.require_method(configuration, choice.backend, training.method)
    if isinstance(configuration, MlxLmConfig) and choice.backend == "MLX":
        policy = open_mlx_lm(folder, training, short)
    elif isinstance(configuration, GenericConfig | MlxLmConfig) or training.method == "qlora":
        if choice.backend == "MLX":  # which has no module for this model
            choice = choose_torch_device(device, configuration.model_type)
        memory_fit.require_backend(configuration, choice.backend)
        policy = open_generic(folder, choice, threads, training, short)
    else:
        policy = open_fast(folder, choice, threads, training, short)
    require_pulse(policy)
    require_finite(folder, configuration.vocab_size)
    return OpenedPolicy(
        policy=policy, tokenizer=tokenizer, backend=choice.backend, device=choice.device, reason=choice.reason,
        threads=threads if choice.backend == "torch" else 1,
    )  # fmt: skip


def open_fast(
    folder: Path, choice: DeviceChoice, threads: int, training: TrainingMode, short: Callable[[str], None]
) -> Union["TorchPolicy", "MlxPolicy"]:
    """Load a model that the fast path computes. Raises ModelError and MemoryShort."""
    if choice.backend == "MLX":
        from waggle.models.mlx.policy import MlxPolicy

        return MlxPolicy(folder, training=training, short=short)
    import torch

    from waggle.models.torch.policy import TorchPolicy

    torch.set_num_threads(threads)
    return TorchPolicy(folder, device=choice.device, training=training, short=short)


def open_mlx_lm(folder: Path, training: TrainingMode, short: Callable[[str], None]) -> "MlxLmPolicy":
    """Load a model with mlx-lm. Raises ModelError and MemoryShort."""
    from waggle.models.mlx_generic.policy import MlxLmPolicy

    return MlxLmPolicy(folder, training=training, short=short)


def open_generic(
    folder: Path, choice: DeviceChoice, threads: int, training: TrainingMode, short: Callable[[str], None]
) -> "GenericPolicy":
    """Load a model with transformers. Raises ModelError and MemoryShort."""
    import torch

    from waggle.models.generic.policy import GenericPolicy

    torch.set_num_threads(threads)
    return GenericPolicy(folder, device=choice.device, training=training, short=short)


def choose_torch_device(requested_device: str, model_type: str) -> DeviceChoice:
    """The device for a model that only transformers computes. Raises ModelError."""
    try:
        device, reason = _torch_device("auto" if requested_device == "mlx" else requested_device)
    except ImportError as error:
        raise ModelError(
            Message("Models of type %1 need torch, which is not installed.", model_type), "Choose another model."
        ) from error
    return DeviceChoice("torch", device, reason)


def choose_device(requested_device: str) -> DeviceChoice:
    """MLX on Apple Silicon if it works, else torch. Raises ModelError if the requested device cannot be used."""
    if requested_device == "mlx":
        if problem := _mlx_problem():
            raise ModelError(Message("MLX cannot be used: %1.", problem), "Set computer.device to auto.")
        return DeviceChoice("MLX", _mlx_device(), Message("chosen in the settings"))
    problem = ""
    if requested_device == "auto" and is_apple_silicon():
        problem = _mlx_problem()
        if not problem:
            return DeviceChoice("MLX", _mlx_device(), Message("this Mac's graphics processor was found"))
    try:
        device, reason = _torch_device(requested_device)
    except ImportError as error:
        why = f"torch is not installed, and MLX cannot be used: {problem}" if problem else "torch is not installed"
        raise ModelError(
            Message("No model can be run: %1.", why), "Install Waggle again, or set computer.device to auto."
        ) from error
    return DeviceChoice("torch", device, Message("MLX cannot be used: %1", problem) if problem else reason)


def _mlx_problem() -> str:
    """Why MLX cannot be used; empty if a small matrix product is right. A frozen app may lack MLX's Metal kernels."""
    try:
        import mlx.core as mx

        product = mx.arange(6, dtype=mx.float32).reshape(2, 3) @ mx.ones((3, 1))
        computed = product.tolist()
    except ImportError:
        return "it is not installed"
    except RuntimeError as error:  # Metal has no device, or no kernel library
        return str(error).splitlines()[0].rstrip(".")
    return "" if computed == RIGHT else WRONG


def _mlx_device() -> str:
    import mlx.core as mx

    return "metal" if mx.metal.is_available() else "cpu"


def _torch_device(device: str) -> tuple[str, Message]:
    import torch

    if device != "auto":
        if device != "cpu" and not getattr(torch, device).is_available():
            raise ModelError(Message("torch finds no device %1 here.", device), "Set computer.device to auto.")
        if device != "cpu" and (problem := _torch_problem(device)):
            raise ModelError(Message("torch cannot use the device %1: %2.", device, problem), "Set computer.device to auto.")
        return device, Message("chosen in the settings")
    if torch.cuda.is_available():
        card = torch.cuda.get_device_name()
        problem = _torch_problem("cuda")
        return ("cpu", Message("%1 cannot be used: %2", card, problem)) if problem else ("cuda", Message("%1 was found", card))
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        problem = _torch_problem("xpu")
        return (
            ("cpu", Message("the Intel GPU cannot be used: %1", problem))
            if problem
            else ("xpu", Message("an Intel GPU was found"))
        )
    return "cpu", cuda_download.why_unusable() or Message("no supported GPU was found, which is normal")


def _torch_problem(device: str) -> str:
    """Why a GPU cannot be used; empty if a small matrix product is right. torch also lists GPUs too old for its kernels."""
    import torch

    try:
        product = torch.arange(6.0, device=device).reshape(2, 3) @ torch.ones(3, 1, device=device)
        computed = product.tolist()
    except RuntimeError as error:
        return str(error).splitlines()[0].rstrip(".")
    return "" if computed == RIGHT else WRONG
