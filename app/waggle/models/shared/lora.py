"""LoRA (arXiv 2106.09685): a weight W counts as W + 2 B A, with A (rank, in) and B (out, rank); only they are trained.

Any backend reads the checkpoint of another. The names are peft's without its prefix `base_model.model.`, and no
adapter_config.json stands beside them: peft itself does not read them. Left out: dropout, other targets, other ranks.
"""

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waggle.rl.random_streams import generator

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


def fused(module: str, weight: Any, adapters: Mapping[str, Any]) -> Any:
    """A weight with its adapters added, where it has some; of any array library."""
    a_name, b_name = names(module)
    return weight + SCALE * (adapters[b_name] @ adapters[a_name]) if a_name in adapters else weight
