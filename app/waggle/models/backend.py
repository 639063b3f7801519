"""Opens a policy on the best device there is, and says which and why. Importing this file imports no backend."""

import gc
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

from waggle.core import cuda_download
from waggle.core.errors import ModelError
from waggle.models.shared import model_config
from waggle.models.shared.training_mode import Training
from waggle.models.tokenizer import Tokenizer
from waggle.models.tokenizer import load as load_tokenizer
from waggle.rl.batch import nothing

if TYPE_CHECKING:
    from waggle.models.mlx.policy import MlxPolicy
    from waggle.models.torch.policy import TorchPolicy

RIGHT = [[3.0], [12.0]]  # the product of 0 ... 5 in two rows and three ones
WRONG = "a product of two small matrices came out wrong"


@dataclass(frozen=True)
class Opened:
    """A policy ready to be used from the thread that opened it."""

    policy: Union["TorchPolicy", "MlxPolicy"]
    tokenizer: Tokenizer
    backend: str
    device: str
    reason: str
    threads: int


@dataclass(frozen=True)
class Choice:
    """Which backend computes on which device, and why."""

    backend: str
    device: str
    reason: str


def threads_for(chosen: int) -> int:
    """How many cores to use: the chosen number, else a quarter of them, so that the computer stays pleasant to use."""
    cores = os.cpu_count() or 1
    return min(chosen, cores) if chosen else max(1, cores // 4)


def use_threads(count: int) -> None:
    """From now on, in a process that has opened a policy of torch; call it in the policy's thread."""
    import torch

    torch.set_num_threads(count)


def let_go() -> None:
    """Give back what policies hold that nobody uses any more: the next one is measured by the memory that is free."""
    gc.collect()  # an engine and its gate refer to each other
    if sys.modules.get("torch"):  # None: where it may not be imported
        from waggle.models.torch.memory import give_back_on_cards

        give_back_on_cards()


def open_policy(
    folder: Path, *, device: str, threads: int, training: Training | None = None, short: Callable[[str], None] = nothing
) -> Opened:
    """Load a model folder; raises ModelError. Imports torch, which takes seconds, or MLX, which does not.

    `short` is told, in one sentence, when memory ran short and less runs together from then on.
    """
    tokenizer = load_tokenizer(folder, rows=model_config.read(folder).vocab_size)  # beyond them MLX reads anything, or crashes
    choice = choose(device)
    policy = _policy(folder, choice, threads, training or Training(), short)
    return Opened(
        policy=policy, tokenizer=tokenizer, backend=choice.backend, device=choice.device, reason=choice.reason,
        threads=threads if choice.backend == "torch" else 1,
    )  # fmt: skip


def _policy(
    folder: Path, choice: Choice, threads: int, training: Training, short: Callable[[str], None]
) -> Union["TorchPolicy", "MlxPolicy"]:
    if choice.backend == "MLX":
        from waggle.models.mlx.policy import MlxPolicy

        return MlxPolicy(folder, training=training, short=short)
    import torch

    from waggle.models.torch.policy import TorchPolicy

    torch.set_num_threads(threads)
    return TorchPolicy(folder, device=choice.device, training=training, short=short)


def choose(requested_device: str) -> Choice:
    """MLX on Apple Silicon, where it works; elsewhere torch. Raises ModelError where what is wanted cannot be had."""
    if requested_device == "mlx":
        if problem := _mlx_problem():
            raise ModelError(f"MLX cannot be used: {problem}.", "Set computer.device to auto.")
        return Choice("MLX", _mlx_device(), "chosen in the settings")
    problem = ""
    if requested_device == "auto" and is_apple_silicon():
        problem = _mlx_problem()
        if not problem:
            return Choice("MLX", _mlx_device(), "this Mac's graphics processor was found")
    try:
        device, reason = _torch_device(requested_device)
    except ImportError as error:
        why = f"torch is not installed, and MLX cannot be used: {problem}" if problem else "torch is not installed"
        raise ModelError(f"No model can be run: {why}.", "Install Waggle again, or set computer.device to auto.") from error
    return Choice("torch", device, f"MLX cannot be used: {problem}" if problem else reason)


def is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


def _mlx_problem() -> str:
    """Why MLX cannot be used; empty where a small product comes out right. A frozen app may lack MLX's programs for the GPU."""
    try:
        import mlx.core as mx

        product = mx.arange(6, dtype=mx.float32).reshape(2, 3) @ mx.ones((3, 1))
        computed = product.tolist()
    except ImportError:
        return "it is not installed"
    except RuntimeError as error:  # of Metal: no device, no library of its programs
        return str(error).splitlines()[0].rstrip(".")
    return "" if computed == RIGHT else WRONG


def _mlx_device() -> str:
    import mlx.core as mx

    return "metal" if mx.metal.is_available() else "cpu"


def _torch_device(device: str) -> tuple[str, str]:
    import torch

    if device != "auto":
        if device != "cpu" and not getattr(torch, device).is_available():
            raise ModelError(f"torch finds no device {device} here.", "Set computer.device to auto.")
        if device != "cpu" and (problem := _torch_problem(device)):
            raise ModelError(f"torch cannot use the device {device}: {problem}.", "Set computer.device to auto.")
        return device, "chosen in the settings"
    if torch.cuda.is_available():
        card = torch.cuda.get_device_name()
        problem = _torch_problem("cuda")
        return ("cpu", f"{card} cannot be used: {problem}") if problem else ("cuda", f"{card} was found")
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        problem = _torch_problem("xpu")
        return ("cpu", f"the Intel GPU cannot be used: {problem}") if problem else ("xpu", "an Intel GPU was found")
    return "cpu", cuda_download.why_unusable() or "no supported GPU was found, which is normal"


def _torch_problem(device: str) -> str:
    """Why a graphics processor cannot be used; empty where a small product comes out right. torch counts cards, too, that are too
    old for its programs."""
    import torch

    try:
        product = torch.arange(6.0, device=device).reshape(2, 3) @ torch.ones(3, 1, device=device)
        computed = product.tolist()
    except RuntimeError as error:
        return str(error).splitlines()[0].rstrip(".")
    return "" if computed == RIGHT else WRONG
