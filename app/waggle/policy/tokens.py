"""A policy's words: `tokenizer.json` read once, outside every backend.

Loaded with `tokenizers` itself: transformers' AutoTokenizer replaces a qwen2 folder's own pre-tokenizer without a word.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from waggle.errors import ModelError
from waggle.rl.batch import Ids

LARGEST_TOKEN = 1 << 31  # ids are int32


class Tokens:
    """Encode and decode. Special tokens inside a text are plain text; `stop` is the token that ends a completion."""

    def __init__(self, tokenizer: Tokenizer, stop: int) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.encode_special_tokens = True  # else "<|eos|>" inside a peer's text would become a real stop
        self.stop = stop

    def encode(self, text: str) -> Ids:
        """Token ids (T,) of a text, with nothing added."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        """The text of ids; half-written characters become U+FFFD."""
        return str(self._tokenizer.decode(ids.tolist(), skip_special_tokens=False))

    def offsets(self, text: str) -> Ids:
        """(T, 2): where each token of the encoded text begins and ends, in characters."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).offsets, dtype=np.int32).reshape(-1, 2)


def load(folder: Path) -> Tokens:
    """The words of a transformers folder; raises ModelError."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"There is no tokenizer.json in {folder}.", "Choose a complete transformers folder.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ModelError(f"The tokenizer in {folder} cannot be read: {error}.", "Download the model again.") from error
    return Tokens(tokenizer, _stop_token(folder))


def _stop_token(folder: Path) -> int:
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            stop = _config(path).get("eos_token_id")
            if isinstance(stop, list) and stop:
                stop = stop[0]
            if isinstance(stop, int) and 0 <= stop < LARGEST_TOKEN and not isinstance(stop, bool):
                return stop
    raise ModelError(f"The model in {folder} names no stop token.", "Its config.json needs an eos_token_id.")


def _config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.", "Copy or download the model again.") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no settings of a model.", "Copy or download the model again.")
    return found
