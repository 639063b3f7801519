"""The precision of an export: which one, how numbers are rounded to it, and how a configuration names it."""

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from waggle.models.shared import weight_files
from waggle.models.shared.weight_files import Array
from waggle.rl.random_streams import generator

NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}  # of safetensors' precisions in config.json


def most_common(sizes: Iterable[tuple[str, int]]) -> str:
    """The precision of most numbers, from (precision, count) of each array."""
    counts = Counter[str]()
    for precision, count in sizes:
        if precision in NAMES:
            counts[precision] += count
    return counts.most_common(1)[0][0]


def rounded(name: str, weight: Array, precision: str) -> NDArray[Any]:
    """A weight (fp32) rounded stochastically, each time the same."""
    return weight_files.round_to(weight, precision, generator(0, "export", zlib.crc32(name.encode())))


def named_in(table: dict[str, Any], precision: str) -> dict[str, Any]:
    """The content of config.json with this precision."""
    return table | dict.fromkeys(("dtype", "torch_dtype"), NAMES[precision])
