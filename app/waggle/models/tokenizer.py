"""A policy's tokenizer, read from `tokenizer.json`; the same for every backend.

Loaded with `tokenizers` itself, because transformers' AutoTokenizer silently replaces the pre-tokenizer of a qwen2 folder.
"""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tokenizers

from waggle.core.errors import ModelError, WaggleError
from waggle.models.chat_template import ChatTemplate
from waggle.models.chat_template import read as read_chat
from waggle.models.shared.model_config import table_in
from waggle.rl.batch import Ids

LARGEST_TOKEN = 1 << 31  # ids are int32


class Tokenizer:
    """Encodes and decodes. Names of special tokens inside a text are plain text. `stop` is the token that ends a completion."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, stop: int, chat: ChatTemplate | None = None) -> None:
        self._tokenizer, self._chat = tokenizer, chat
        self._lock = threading.Lock()  # the policy thread and those of Chat and Try it share what `_special` switches
        self._pieces: dict[int, list[Ids]] = {}  # of the template, around so many messages
        if chat:
            self._pieces_around(chat, 1)
        marked = tokenizer.encode("a", add_special_tokens=True)
        self._first = np.asarray(marked.ids[: [*marked.special_tokens_mask, 0].index(0)], np.int32)  # such as BOS
        self._tokenizer.encode_special_tokens = True  # or "<|eos|>" in a peer's text would become a stop token
        self.stop = stop

    def encode(self, text: str) -> Ids:
        """Token ids (T,) of a text, with nothing added."""
        with self._lock:
            return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def prompt(self, text: str) -> Ids:
        """Token ids (T,) of a plain text, after the tokens that preceded every training text (such as BOS)."""
        return np.concatenate([self._first, self.encode(text)])

    @property
    def largest(self) -> int:
        """The largest token id that a prompt or completion can contain."""
        words = self._tokenizer.get_vocab(with_added_tokens=False).values()
        added = (token for token, each in self._tokenizer.get_added_tokens_decoder().items() if not each.special)
        template = itertools.chain.from_iterable(self._pieces.values())
        framed = (token for piece in (self._first, *template) for token in piece.tolist())
        return int(max([self.stop, *words, *added, *framed]))

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    def conversation(self, messages: Sequence[str]) -> Ids:
        """Token ids (T,) of messages of a person and the model in turn, the person's last, in the chat template.

        Raises ModelError. Without a chat template only the last message counts: such a model knows no turns.
        """
        if self._chat is None:
            return self.prompt(messages[-1])
        return self._between(self._pieces_around(self._chat, len(messages)), messages)

    def _pieces_around(self, chat: ChatTemplate, count: int) -> list[Ids]:
        if count not in self._pieces:
            self._pieces[count] = [self._special(piece) for piece in chat.pieces_around(count)]
        return self._pieces[count]

    def _between(self, pieces: Sequence[Ids], messages: Sequence[str]) -> Ids:
        """Join the template's pieces with messages. Messages are encoded as plain text, whatever they contain."""
        parts = [pieces[0]]
        for text, piece in zip(messages, pieces[1:], strict=True):
            parts += [self.encode(text.strip()), piece]
        return np.concatenate(parts)

    def _special(self, text: str) -> Ids:
        """Token ids of a piece of the template, in which special tokens are special."""
        with self._lock:
            self._tokenizer.encode_special_tokens = False
            ids = self._tokenizer.encode(text, add_special_tokens=False).ids
            self._tokenizer.encode_special_tokens = True
        return np.asarray(ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        """The text of token ids; incomplete UTF-8 sequences become U+FFFD."""
        return str(self._tokenizer.decode(ids.tolist(), skip_special_tokens=False))

    def offsets(self, text: str) -> Ids:
        """(T, 2): the first and the last character (exclusive) of each token of the encoded text."""
        with self._lock:
            return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).offsets, dtype=np.int32).reshape(-1, 2)


def load(folder: Path, *, rows: int = LARGEST_TOKEN) -> Tokenizer:
    """The tokenizer of a transformers folder. Raises ModelError, also for token ids beyond the `rows` of the embedding."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"There is no tokenizer.json in {folder}.", "Choose a complete transformers folder.")
    with _model_errors(folder):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_truncation()  # some files ask for it, for their own purposes
        tokenizer.no_padding()
        if hasattr(tokenizer.model, "dropout"):
            tokenizer.model.dropout = None  # BPE dropout would encode the same text differently each time
        chat = read_chat(folder)
        stop = tokenizer.token_to_id(chat.stop) if chat and chat.stop else None  # ends a turn, not a document
        if stop is None:
            stop = _stop_token(folder)
        _make_special(tokenizer, stop)
        result = Tokenizer(tokenizer, stop, chat)
        if stop in result.encode(result.decode(np.asarray([stop]))):
            raise ModelError(f"Any text may hold the stop token of the model in {folder}.", "Choose another model.")
        if result.largest >= rows:
            raise ModelError(f"The words of the model in {folder} do not fit it: it has {rows} tokens.", "Choose another model.")
    return result


@contextmanager
def _model_errors(folder: Path) -> Iterator[None]:
    """Turn everything that a tokenizer raises into ModelError; panics of Rust are BaseExceptions."""
    try:
        yield
    except (WaggleError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelError(f"The tokenizer in {folder} cannot be read: {error}.", "Choose another model.") from error


def _make_special(tokenizer: tokenizers.Tokenizer, stop: int) -> None:
    """Mark the stop token as special, even if the file does not, as transformers does.

    Other added tokens stay ordinary words: an honest text may contain them.
    """
    token = tokenizer.get_added_tokens_decoder().get(stop)
    if token is not None and not token.special:
        token.special = True
        tokenizer.add_special_tokens([token])


def _stop_token(folder: Path) -> int:
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            stop = table_in(path).get("eos_token_id")
            if isinstance(stop, list) and stop:
                stop = stop[0]
            if isinstance(stop, int) and 0 <= stop < LARGEST_TOKEN and not isinstance(stop, bool):
                return stop
    raise ModelError(f"The model in {folder} names no stop token.", "Its config.json needs an eos_token_id.")
