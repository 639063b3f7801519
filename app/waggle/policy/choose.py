"""Opens a policy on the best device there is, and says which and why. Importing this file imports no backend."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from waggle.policy.tokens import Tokens
from waggle.policy.tokens import load as load_tokens

if TYPE_CHECKING:
    from waggle.policy.torch_policy import TorchPolicy


@dataclass(frozen=True)
class Opened:
    """A policy ready to be used from the thread that opened it."""

    policy: "TorchPolicy"
    tokens: Tokens
    backend: str
    device: str
    reason: str
    threads: int


def threads_for(chosen: int) -> int:
    """How many cores to use: the chosen number, else a quarter of them, so that the computer stays pleasant to use."""
    cores = os.cpu_count() or 1
    return min(chosen, cores) if chosen else max(1, cores // 4)


def open_policy(folder: Path, *, device: str, threads: int) -> Opened:
    """Load a model folder; raises ModelError. Imports torch, which takes seconds."""
    tokens = load_tokens(folder)
    import torch

    from waggle.policy.torch_policy import TorchPolicy

    torch.set_num_threads(threads)
    name, reason = _device(device)
    return Opened(
        policy=TorchPolicy(folder, device=name), tokens=tokens, backend="torch", device=name, reason=reason, threads=threads
    )


def _device(wanted: str) -> tuple[str, str]:
    import torch

    if wanted != "auto":
        return wanted, "chosen in the settings"
    if torch.cuda.is_available():
        return "cuda", f"{torch.cuda.get_device_name()} was found"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "xpu", "an Intel GPU was found"
    return "cpu", "no supported GPU was found, which is normal"
