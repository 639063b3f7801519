"""Arrays of weight files as arrays of MLX."""

from typing import Any

import mlx.core as mx
from numpy.typing import NDArray

from waggle.models.shared.weight_files import is_bits


def as_mlx(values: NDArray[Any]) -> mx.array:
    """An array of MLX; bits of bfloat16 (`is_bits`) become bfloat16."""
    return mx.array(values).view(mx.bfloat16) if is_bits(values) else mx.array(values)
