"""LoRA (arXiv 2106.09685): a weight W counts as W + 2 B A, with A (rank, in) and B (out, rank); only they are trained.

The names are peft's, so that any backend reads the checkpoint of another. Left out: dropout, other targets, other ranks.
"""

import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waggle.rl.noise import generator

RANK = 16
SCALE = 2.0
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def names(module: str) -> tuple[str, str]:
    """What A and B of a linear layer are called in a state."""
    return f"{module}.lora_A.weight", f"{module}.lora_B.weight"


def first_a(module: str, width: int) -> NDArray[np.float32]:
    """A (rank, in) before training, the same on every machine; B begins as zeros, so that W counts as it is."""
    noise = generator(0, "adapter", zlib.crc32(module.encode()))
    bound = 1.0 / math.sqrt(width)
    return noise.uniform(-bound, bound, (RANK, width)).astype(np.float32)


def fuse(weights: dict[str, Any], adapters: dict[str, Any]) -> dict[str, Any]:
    """The weights with their adapters added, of any array library; raises KeyError for adapters of another model."""
    fused = dict(weights)
    for a_name in sorted(name for name in adapters if name.endswith(".lora_A.weight")):
        module = a_name.removesuffix(".lora_A.weight")
        weight, a, b = weights[f"{module}.weight"], adapters[a_name], adapters[names(module)[1]]
        fused[f"{module}.weight"] = weight + SCALE * (b @ a)
    return fused
