"""LoRA (arXiv 2106.09685): W + 2 B A in the place of a weight W, with A (rank, in) and B (out, rank). Only A and B are trained.

Names are those of peft without its prefix `base_model.model.`. There is no adapter_config.json, so peft does not read these
files; both backends do. Left out: dropout, other targets, other ranks.
"""

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waggle.rl.random_streams import generator

RANK = 16
SCALE = 2.0  # alpha / rank
TARGETS = ("q_proj", "k_proj", "v_proj", "qkv_proj", "o_proj", "gate_proj", "up_proj", "gate_up_proj", "down_proj")


def names(module: str) -> tuple[str, str]:
    """The names of A and B of a linear layer."""
    return f"{module}.lora_A.weight", f"{module}.lora_B.weight"


def first_a(module: str, width: int) -> NDArray[np.float32]:
    """A (rank, in) before training, the same on every machine. B starts as zeros, so that W is unchanged."""
    noise = generator(0, "adapter", zlib.crc32(module.encode()))
    bound = 1.0 / math.sqrt(width)
    return noise.uniform(-bound, bound, (RANK, width)).astype(np.float32)


def fuse(module: str, weight: Any, adapters: Mapping[str, Any]) -> Any:
    """A weight plus its adapters, if it has any; arrays of any library."""
    a_name, b_name = names(module)
    return weight + SCALE * (adapters[b_name] @ adapters[a_name]) if a_name in adapters else weight
