"""Embeddings of finite numbers: the pulse sees those of its own few tokens only, and a damaged row spoils every text with it.

The head needs no such check, as each log-prob is among all tokens, and neither does an embedding that is the head, too.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.models.shared import weight_files
from waggle.models.shared.model_files import unread
from waggle.models.shared.weight_files import STORED, StoredArray

EXPONENTS = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F800000}  # all of these bits are set in infinity and NaN
PIECE = 1 << 24  # bytes that are read at once


def require_finite(folder: Path, rows: int) -> None:
    """Raise ModelError if an embedding of so many rows, beside a head of its own, has a number that is not finite."""
    try:
        arrays = weight_files.arrays_by_name(folder).values()
        tables = [array for array in arrays if len(array.shape) == 2 and array.shape[0] == rows and array.precision in EXPONENTS]
        if len(tables) < 2 or all(map(_is_finite, tables)):
            return
    except (OSError, SafetensorError) as error:
        raise unread(folder, error) from error
    raise ModelError("The model has words that are no numbers.", "Copy or download it again, or choose another model.")


def _is_finite(array: StoredArray) -> bool:
    mask = EXPONENTS[array.precision]
    return not any(bool(((piece & mask) == mask).any()) for piece in _pieces(array))


def _pieces(array: StoredArray) -> Iterator[np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]]:
    """The bits of its numbers."""
    bits = np.dtype(f"<u{STORED[array.precision].itemsize}")
    with array.path.open("rb") as file:
        file.seek(array.offset)
        for begin in range(0, array.size, PIECE):
            yield np.frombuffer(file.read(min(PIECE, array.size - begin)), bits)
