"""Weight files in any precision, as numpy. bfloat16, unknown to it, is read as fp32 and written rounded, or kept as its bits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import TensorSpec, deserialize, safe_open, serialize_file

Array = NDArray[np.float32]
STORED: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


def read(path: Path) -> dict[str, Array]:
    """Every weight of a file in fp32; raises OSError, SafetensorError, or KeyError for a precision that is none of ours."""
    return {name: widened(values) for name, values in load(path).items()}


def load(path: Path) -> dict[str, NDArray[Any]]:
    """Every array of a file as it is, bfloat16 as its bits in uint16; raises as `read`."""
    with safe_open(path, "np") as file:
        stored = {name: STORED[file.get_slice(name).get_dtype()] for name in file.keys()}  # noqa: SIM118 - no mapping
        if STORED["BF16"] not in stored.values():  # array by array: the file is never in memory as well
            return {name: file.get_tensor(name) for name in stored}
    return {
        name: np.frombuffer(found["data"], stored[name]).reshape(found["shape"])
        for name, found in deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    }


def save(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """What `load` finds again; raises OSError, SafetensorError."""
    kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    serialize_file({name: _specification(array) for name, array in kept.items()}, path, metadata={"format": "pt"})


def is_bits(array: NDArray[Any]) -> bool:
    """Whether these are numbers in bfloat16."""
    return array.dtype == np.uint16


def widened(array: NDArray[Any]) -> Array:
    """In fp32."""
    return (array.astype(np.uint32) << 16).view(np.float32) if is_bits(array) else array.astype(np.float32, copy=False)


def _specification(array: NDArray[Any]) -> TensorSpec:
    precision = "bfloat16" if is_bits(array) else str(array.dtype)
    return TensorSpec(dtype=precision, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)


def write(weights: Mapping[str, Array], path: Path, precision: str) -> None:
    """A file that transformers reads; raises OSError."""
    save({name: _stored(weight, precision) for name, weight in weights.items()}, path)


def _stored(weight: Array, precision: str) -> NDArray[Any]:
    if precision != "bfloat16":
        return np.ascontiguousarray(weight, np.dtype(precision))
    bits = np.ascontiguousarray(weight, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # to the nearest, ties to even
