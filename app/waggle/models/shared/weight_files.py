"""safetensors files in any precision, read and written array by array. bfloat16, which numpy lacks, is kept as its bits."""

import json
import math
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.shared.configuration.model_config import ANOTHER, EMBEDDING, HEAD, table_in
from waggle.models.shared.model_files import unread

Array = NDArray[np.float32]
STORED: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
PACKED: dict[str, np.dtype[Any]] = {"U32": np.dtype("<u4"), "U8": np.dtype("u1")}  # numbers of quantised weights
BASE = "model."  # of the names of weights below the head
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"  # one file, or the index of several
File = Annotated[str, msgspec.Meta(pattern=r"^[\w-][\w.-]*\.safetensors\Z")]  # no path: strangers wrote the index
LARGEST_HEADER = 1 << 25  # bytes; the header of a file with a hundred thousand arrays is a third of that
PICKLES = (".bin", ".pt", ".pth", ".ckpt")  # of weights: they can run any code, and are never read
DROPPED = {"F16": 13, "BF16": 16}  # low bits of an fp32 number that the format drops


@dataclass(frozen=True)
class StoredArray:
    """The place of one array in a file."""

    path: Path
    precision: str  # in the terms of safetensors
    shape: tuple[int, ...]
    offset: int  # bytes
    size: int = 0  # bytes

    def read(self) -> NDArray[Any]:
        """Read the array, bfloat16 as its bits in uint16. Raises OSError and SafetensorError.

        Without mmap: the system kills a process that reads a mapped file which another one truncates.
        """
        precision = (STORED | PACKED).get(self.precision)
        if precision is None:
            raise SafetensorError(Message("weights in %1", self.precision))
        values = np.fromfile(self.path, precision, math.prod(self.shape), offset=self.offset)
        if values.size != math.prod(self.shape):
            raise SafetensorError(Message("%1 became shorter", self.path.name))
        return values.reshape(self.shape)


def arrays_in(path: Path) -> dict[str, StoredArray]:
    """The arrays of a file by name. Raises OSError, and SafetensorError if the file is incomplete or no regular file."""
    _check_header(path)
    with safe_open(path, "np"), path.open("rb") as file:  # safe_open checks all offsets and sizes
        data = 8 + int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(data - 8))
    return {name: _stored_array(path, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _stored_array(path: Path, entry: dict[str, Any], data: int) -> StoredArray:
    begin, end = entry["data_offsets"]
    return StoredArray(path, entry["dtype"], tuple(entry["shape"]), data + begin, end - begin)


def _check_header(path: Path) -> None:
    """Raise SafetensorError in plain words for a header that cannot be read, before a parser reads it, and OSError."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would block the reader
        raise SafetensorError(Message("%1 is not a file", path.name))
    with path.open("rb") as file:
        head = file.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or 8 + length > status.st_size:
        raise SafetensorError(Message("%1 is incomplete", path.name))
    if length > LARGEST_HEADER:
        raise SafetensorError(Message("the header of %1 is too large", path.name))


def of_model(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, StoredArray]:
    """The place of each weight of a model. Raises ModelError if one is missing or wrong, OSError and SafetensorError."""
    there = arrays_by_name(folder)
    chosen = places(folder, shapes, there)
    if HEAD in there and HEAD not in shapes and not np.array_equal(there[HEAD].read(), chosen[EMBEDDING].read()):
        raise _untied_error(folder)
    return chosen


def places(folder: Path, shapes: Mapping[str, tuple[int, ...]], arrays: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """The place of each weight of a model among these arrays, of which only the headers were read. Raises ModelError."""
    there = _with_base_names(arrays, shapes)
    if HEAD in there and HEAD not in shapes:
        there.setdefault(EMBEDDING, there[HEAD])  # tied weights may be saved under either name
        if there[HEAD].shape != there[EMBEDDING].shape:
            raise _untied_error(folder)
    for name, shape in shapes.items():
        if name not in there:
            raise _other_names_error(folder, name, there) or _missing_error(folder, name)
        if there[name].shape != shape:
            problem = f"{name} is {list(there[name].shape)}, and its config.json says {list(shape)}"
            raise ModelError(Message("The model in %1 cannot be read: %2.", folder, problem), "Copy or download it again.")
        if (precision := there[name].precision) not in STORED:
            raise ModelError(
                Message("Waggle does not know weights in %1.", precision), Message("It knows %1.", ", ".join(STORED))
            )
    return {name: there[name] for name in shapes}


def _with_base_names(arrays: Mapping[str, StoredArray], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, StoredArray]:
    """The arrays, under the names of a causal language model also if the model below its head was saved, as AutoModel does."""
    there = dict(arrays)
    missing = [name for name in shapes if name not in there and name.startswith(BASE)]
    if missing and all(name.removeprefix(BASE) in there for name in missing):
        there |= {name: there[name.removeprefix(BASE)] for name in missing}
    return there


def _other_names_error(folder: Path, name: str, there: Mapping[str, StoredArray]) -> ModelError | None:
    """The error if a weight has a prefix that a wrapper gave it, such as `module.` or `_orig_mod.`; None if it is missing."""
    other = next((each for each in there if each.endswith(f".{name}")), "")
    if not other:
        return None
    return ModelError(
        Message("The weights of the model in %1 are named otherwise: %2, not %3.", folder, other, name),
        "Save the model itself, not what wraps it: model.module.save_pretrained, for example.",
    )


def _untied_error(folder: Path) -> ModelError:
    return ModelError(Message("The model in %1 cannot be read: its head is not its embedding, as it says.", folder), ANOTHER)


def files_of(folder: Path) -> list[Path]:
    """The weight files that a model is read from. Raises ModelError."""
    return [folder / name for name in sorted({WEIGHTS} if (folder / WEIGHTS).exists() else set(_index(folder).values()))]


def arrays_by_name(folder: Path) -> dict[str, StoredArray]:
    """The arrays of a model, where transformers looks for them: in one file, or in those that the index names.

    Raises ModelError, OSError and SafetensorError.
    """
    files = {path.name: arrays_in(path) for path in files_of(folder)}
    if WEIGHTS in files:
        return files[WEIGHTS]
    return {name: files[file][name] for name, file in _index(folder).items() if name in files[file]}


def _index(folder: Path) -> dict[str, File]:
    """The file of each array. Raises ModelError."""
    if not (folder / INDEX).exists():
        pickled = folder.is_dir() and any(path.suffix in PICKLES for path in folder.iterdir())
        raise _pickled_error(folder) if pickled else _missing_error(folder, WEIGHTS)
    try:
        return msgspec.convert(table_in(folder / INDEX).get("weight_map"), dict[str, File])
    except msgspec.ValidationError as error:
        raise ModelError(Message("%1 cannot be read: %2.", folder / INDEX, error), "Copy or download the model again.") from error


def _pickled_error(folder: Path) -> ModelError:
    return ModelError(
        Message("The weights of the model in %1 are only there as pickles, which can run any code where they are read.", folder),
        "Choose a model with .safetensors files.",
    )


def _missing_error(folder: Path, what: str) -> ModelError:
    return ModelError(Message("The model in %1 cannot be read: %2 is not there.", folder, what), "Copy or download it again.")


def read_model(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield (name, weight) one at a time. Raises ModelError."""
    try:
        for name, weight in of_model(folder, shapes).items():
            yield name, weight.read()
    except (OSError, SafetensorError) as error:
        raise unread(folder, error) from error


def load(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of a file. Raises OSError and SafetensorError."""
    return {name: weight.read() for name, weight in arrays_in(path).items()}


def save(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays to a file for `load`. Raises OSError."""
    write(path, {name: (_precision(array), array.shape) for name, array in arrays.items()}, arrays.__getitem__)


def write(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]], each: Callable[[str], NDArray[Any]]) -> None:
    """Write a file from (precision, shape) by name; `each` returns one array at a time. Raises OSError."""
    write_pieces(path, tensors, lambda name: (np.ascontiguousarray(each(name), STORED[tensors[name][0]]).data,))


def write_pieces(
    path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]], pieces: Callable[[str], Iterable[bytes | memoryview]]
) -> None:
    """The same; `pieces` returns the bytes of one array, in order. Raises OSError."""
    names = sorted(tensors, key=lambda name: (-STORED[tensors[name][0]].itemsize, name))  # wide first: aligned
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in names:
        precision, shape = tensors[name]
        begin, end = end, end + STORED[precision].itemsize * math.prod(shape)
        header[name] = {"dtype": precision, "shape": shape, "data_offsets": (begin, end)}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name in names:
            for piece in pieces(name):
                file.write(piece)
                del piece  # or it would be in memory beside the next array


def is_bits(array: NDArray[Any]) -> bool:
    """Whether an array holds bits of bfloat16 numbers."""
    return array.dtype == np.uint16


def as_fp32(array: NDArray[Any]) -> Array:
    """An array as fp32."""
    return (array.astype(np.uint32) << 16).view(np.float32) if is_bits(array) else array.astype(np.float32, copy=False)


def round_to(weight: Array, precision: str, noise: np.random.Generator) -> NDArray[Any]:
    """fp32 weights in the precision of a file, with stochastic rounding.

    Most steps of reinforcement learning are smaller than the distance between two numbers of that precision. Rounding to the
    nearest would lose them; stochastic rounding is right on average.
    """
    if precision not in DROPPED:
        return weight.astype(STORED[precision])
    dropped = DROPPED[precision]
    bits: NDArray[np.uint32] = np.ascontiguousarray(weight, np.float32).view(np.uint32)
    bits = bits + noise.integers(0, 1 << dropped, weight.shape, np.uint16)
    narrow = bits >> dropped
    return narrow.astype(np.uint16) if precision == "BF16" else (narrow << dropped).view(np.float32).astype(STORED[precision])


def _precision(array: NDArray[Any]) -> str:
    return next(name for name, precision in STORED.items() if precision == array.dtype)
