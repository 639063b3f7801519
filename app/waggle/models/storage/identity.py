"""Who a model is, from its files alone: its numbers, its words and its speech.

Numbers are the names, shapes, precisions and values of its weights, however many files they lie in. Of a large array 256 KiB are
read, in eight pieces from its beginning to its end, so that 3 GB take a second at most. That tells trained models apart: training
changes nearly every array, and in each of them numbers everywhere. Whoever forges a model with equal pieces deceives nobody but
the owner of the home that trains it.

Words are which text each token id stands for. Speech is what begins and ends an answer: stop tokens and chat template. All other
fields of these files may change, for example with the version of the program that wrote them, without making another model.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError

from waggle.core.errors import UNREADABLE
from waggle.models import chat_template, stop_tokens, tokenizer_conversion
from waggle.models.shared import weight_files
from waggle.models.shared.configuration.model_config import table_in
from waggle.models.shared.model_files import unread
from waggle.models.shared.weight_files import StoredArray

PIECES, PIECE = 8, 1 << 15  # bytes of a large array that are read
DIGITS = 32  # of a hash, in hex
LARGEST_VOCABULARY = 48 << 20  # bytes of a tokenizer.json that is decoded; of a larger one, all bytes count
CACHE_SIZE = 64  # files of models on this computer

Stamp = tuple[str, int, int]  # path, size and time of the last change in ns


class ModelIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Hashes in hex. `words` is empty as long as the tokenizer has not been converted (see `tokenizer_conversion`)."""

    shapes: str  # names and shapes: in models that share them, one's training can continue on the other's weights
    numbers: str  # shapes, precisions and values
    words: str
    stops: str
    template: str

    def is_same_model(self, other: "ModelIdentity") -> bool:
        """Whether training goes on from one to the other: equal numbers and words, whatever the speech."""
        return self.numbers == other.numbers and self.has_words_of(other)

    def has_words_of(self, other: "ModelIdentity") -> bool:
        return self.words == other.words or not (self.words and other.words)


def read(folder: Path) -> ModelIdentity:
    """The identity of the model in a transformers folder. Raises ModelError."""
    try:
        shapes, numbers = _numbers_of(folder, tuple(map(stamp_of, weight_files.files_of(folder))))
        path = folder / tokenizer_conversion.TOKENIZER
        words = _words_of(stamp_of(path)) if path.is_file() else ""
        stops, template = _stops_of(folder), _template_of(folder)
    except (OSError, SafetensorError) as error:
        raise unread(folder, error) from error
    return ModelIdentity(shapes=shapes, numbers=numbers, words=words, stops=stops, template=template)


def stamp_of(path: Path) -> Stamp:
    """What changes with the content of a file. Raises OSError."""
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


@lru_cache(CACHE_SIZE)
def _numbers_of(folder: Path, _files: tuple[Stamp, ...]) -> tuple[str, str]:
    """Hashes of the shapes and of the numbers, in the order of the names. Cached as long as the `_files` stay as they are."""
    shapes, numbers = hashlib.sha256(), hashlib.sha256()
    for name, array in sorted(weight_files.arrays_by_name(folder).items()):
        described = json.dumps([name, array.shape]).encode()
        shapes.update(described)
        numbers.update(described + array.precision.encode())
        for piece in _pieces_of(array):
            numbers.update(piece)
    return shapes.hexdigest()[:DIGITS], numbers.hexdigest()[:DIGITS]


def _pieces_of(array: StoredArray) -> Iterable[bytes]:
    """All bytes of a small array; of a large one, pieces at even distances, from the first to the last byte."""
    with array.path.open("rb") as file:
        if array.size <= PIECES * PIECE:
            file.seek(array.offset)
            yield file.read(array.size)
            return
        for number in range(PIECES):
            file.seek(array.offset + (array.size - PIECE) * number // (PIECES - 1))
            yield file.read(PIECE)


class _Added(msgspec.Struct, frozen=True):
    id: int
    content: str


class _Vocabulary(msgspec.Struct, frozen=True):
    """Ids by text, or for Unigram a list of (text, score) by id."""

    vocab: dict[str, int] | list[tuple[str, float]]


class _Tokenizer(msgspec.Struct, frozen=True):
    model: _Vocabulary
    added_tokens: list[_Added] = []


@lru_cache(CACHE_SIZE)
def _words_of(file: Stamp) -> str:
    """A hash of the vocabulary of a tokenizer.json: it is the same however the file is laid out."""
    path = Path(file[0])
    if file[1] > LARGEST_VOCABULARY:
        return _file_hash(path)
    try:
        tokenizer = msgspec.json.decode(path.read_bytes(), type=_Tokenizer)
    except UNREADABLE:  # of a form that is not known here: then every byte counts
        return _file_hash(path)
    vocabulary = tokenizer.model.vocab
    if isinstance(vocabulary, dict):
        words = {token: word for word, token in vocabulary.items()}
    else:
        words = {token: word for token, (word, _) in enumerate(vocabulary)}
    return _hash(sorted((words | {added.id: added.content for added in tokenizer.added_tokens}).items()))


def _stops_of(folder: Path) -> str:
    return _hash([stop_tokens.declared_stops(folder), chat_template.text_of(_settings_of_tokenizer(folder).get("eos_token"))])


def _template_of(folder: Path) -> str:
    """A hash of the chat template and of the special tokens that it names; empty if there is none."""
    settings = _settings_of_tokenizer(folder)
    template = chat_template.template_of(folder, settings)
    if template is None:
        return ""
    return _hash([template, [chat_template.text_of(settings.get(name)) for name in chat_template.SPECIALS if name in template]])


def _settings_of_tokenizer(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    return table_in(path) if path.is_file() else {}


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()[:DIGITS]


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
