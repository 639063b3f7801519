"""The header of a GGUF file, which a stranger wrote: every count and length is checked against a bound and the file's size.

Readers of the package gguf and of transformers follow the counts of the file: a few bytes can take all memory there. What passes
these checks can be handed to them.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.shared import model_files

MAGIC, VERSIONS = b"GGUF", (2, 3)
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # numbers by their type
TEXT, LIST = 8, 9
MOST_FIELDS, MOST_TENSORS, MOST_DIMENSIONS = 4096, 1 << 16, 4
LONGEST_TEXT, LONGEST_LIST = 1 << 20, 1 << 21  # bytes of a chat template; words of a vocabulary
LARGEST_HEADER = 1 << 27  # bytes; with a vocabulary of 262,000 words and its merges it takes 15 MB
LARGEST_FILE, LARGEST_TENSOR = 1 << 40, 1 << 31  # bytes; numbers
DAMAGED = "it is damaged, or no GGUF file"


@dataclass(frozen=True)
class Tensor:
    """A tensor in the file. `shape` is in the order of torch: rows first."""

    name: str
    kind: int  # of ggml's precisions
    shape: tuple[int, ...]
    offset: int  # from the beginning of the file
    size: int  # bytes

    @property
    def row_bytes(self) -> int:
        return self.size // math.prod(self.shape[:-1])


@dataclass(frozen=True)
class Header:
    """Fields by name: numbers, texts, and lists of them."""

    fields: dict[str, Any]
    tensors: dict[str, Tensor]

    @property
    def architecture(self) -> str:
        return str(self.fields.get("general.architecture", ""))

    def of_architecture(self, name: str) -> Any:
        """A field of the model's own kind, such as `block_count`; None if it is absent."""
        return self.fields.get(f"{self.architecture}.{name}")


class UnreadableError(ModelError):
    """A file that breaks a rule of the format, or that Waggle does not convert."""


class DamagedError(UnreadableError):
    """A file that is not whole, so that another copy of it may be."""


def read(path: Path) -> Header:
    """Read the header of a file. Raises UnreadableError, OSError, and ModelError if it is no regular file."""
    size = model_files.size_of(path, LARGEST_FILE)
    with path.open("rb") as file:
        reader = _Reader(file, size)
        try:
            return _read(reader)
        except (UnicodeError, struct.error, OverflowError) as error:
            raise _damaged() from error


def _read(reader: "_Reader") -> Header:
    if reader.bytes(4) != MAGIC:
        raise _damaged()
    version, tensors, fields = reader.unpack("IQQ")
    if version not in VERSIONS:
        raise UnreadableError(Message("it is of version %1 of GGUF, and Waggle reads versions 2 and 3", version))
    if fields > MOST_FIELDS or tensors > MOST_TENSORS:
        raise UnreadableError("it claims more fields or tensors than any model has")
    table: dict[str, Any] = {}
    for _ in range(fields):
        name = reader.text()
        if name in table:
            raise _damaged()
        table[name] = reader.value(reader.unpack("I")[0])
    infos = [_tensor_info(reader) for _ in range(tensors)]
    if len({name for name, *_ in infos}) < len(infos):
        raise _damaged()
    alignment = table.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 16 or alignment & (alignment - 1):
        raise _damaged()
    begin = -(-reader.position // alignment) * alignment
    placed = {name: _place(name, kind, shape, begin + offset, reader.size) for name, kind, shape, offset in infos}
    if sum(each.size for each in placed.values()) > reader.size:  # tensors that share bytes would grow without bound
        raise UnreadableError("it has tensors that overlap")
    return Header(table, placed)


def _tensor_info(reader: "_Reader") -> tuple[str, int, tuple[int, ...], int]:
    name = reader.text()
    (dimensions,) = reader.unpack("I")
    if not 0 < dimensions <= MOST_DIMENSIONS:
        raise _damaged()
    shape = tuple(reversed(reader.unpack(f"{dimensions}Q")))
    kind, offset = reader.unpack("IQ")
    return name, kind, shape, offset


def _place(name: str, kind: int, shape: tuple[int, ...], offset: int, end: int) -> Tensor:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        numbers, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError) as error:
        raise UnreadableError(Message("it has tensors of precision %1, which Waggle does not know", kind)) from error
    count = math.prod(shape)
    if not 0 < count <= LARGEST_TENSOR or shape[-1] % numbers:
        raise _damaged()
    if offset + count // numbers * size > end:
        raise DamagedError("it is incomplete")
    return Tensor(name, kind, shape, offset, count // numbers * size)


class _Reader:
    """Reads a file from its beginning, and never beyond its end or the bound of a header."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size, self.position = file, size, 0

    def bytes(self, count: int) -> bytes:
        self.position += count
        if self.position > LARGEST_HEADER:
            raise UnreadableError("it has a header that is too large")
        if self.position > self.size or len(content := self._file.read(count)) < count:
            raise DamagedError("it is incomplete" if self.size >= len(MAGIC) else DAMAGED)
        return content

    def unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.bytes(struct.calcsize(f"<{form}")))

    def text(self) -> str:
        (length,) = self.unpack("Q")
        if length > LONGEST_TEXT:
            raise _damaged()
        return self.bytes(length).decode()

    def value(self, kind: int) -> Any:
        if kind in FORMATS:
            return self.unpack(FORMATS[kind])[0]
        if kind == TEXT:
            return self.text()
        if kind != LIST:
            raise _damaged()
        inner, length = self.unpack("IQ")
        if length > LONGEST_LIST or inner not in (*FORMATS, TEXT):
            raise _damaged()
        return [self.text() for _ in range(length)] if inner == TEXT else list(self.unpack(f"{length}{FORMATS[inner]}"))


def _damaged() -> DamagedError:
    return DamagedError(DAMAGED)
