"""A policy's words: `tokenizer.json` read once, outside every backend.

Loaded with `tokenizers` itself: transformers' AutoTokenizer replaces a qwen2 folder's own pre-tokenizer without a word.
"""

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
    """Encode and decode. Special tokens inside a text are plain text; `stop` is the token that ends a completion."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, stop: int, chat: ChatTemplate | None = None) -> None:
        self._tokenizer, self._chat = tokenizer, chat
        self._turn = [self._special(piece) for piece in chat.around(1)] if chat else []
        marked = tokenizer.encode("a", add_special_tokens=True)
        self._first = np.asarray(marked.ids[: [*marked.special_tokens_mask, 0].index(0)], np.int32)  # what every text began with
        self._tokenizer.encode_special_tokens = True  # else "<|eos|>" inside a peer's text would become a real stop
        self.stop = stop

    def encode(self, text: str) -> Ids:
        """Token ids (T,) of a text, with nothing added."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def prompt(self, text: str) -> Ids:
        """Token ids (T,) of a prompt: as a turn of a chat, where the model was taught to chat, else as it is.

        Then the tokens stand before it that stood before every text that the model learned from.
        """
        if self._chat is None:
            return np.concatenate([self._first, self.encode(text)])
        return self._between(self._turn, [text])

    @property
    def largest(self) -> int:
        """The largest id that a text, a prompt or an answer can hold."""
        words = self._tokenizer.get_vocab(with_added_tokens=False).values()
        added = (token for token, each in self._tokenizer.get_added_tokens_decoder().items() if not each.special)
        framed = (token for piece in (self._first, *self._turn) for token in piece.tolist())
        return int(max([self.stop, *words, *added, *framed]))

    @property
    def taught_to_chat(self) -> bool:
        return self._chat is not None

    def conversation(self, messages: Sequence[str]) -> Ids:
        """Token ids (T,) of what a person and the model said in turn, the person last; raises ModelError.

        Of a model that was not taught to chat, what the person said last, as it is: it knows no turns.
        """
        if self._chat is None:
            return self.prompt(messages[-1])
        return self._between([self._special(piece) for piece in self._chat.around(len(messages))], messages)

    def _between(self, pieces: Sequence[Ids], messages: Sequence[str]) -> Ids:
        """What was said is plain text, whatever it says."""
        parts = [pieces[0]]
        for text, piece in zip(messages, pieces[1:], strict=True):
            parts += [self.encode(text.strip()), piece]
        return np.concatenate(parts)

    def _special(self, text: str) -> Ids:
        """Token ids of what the model's own template says: special tokens in it are special."""
        self._tokenizer.encode_special_tokens = False
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        self._tokenizer.encode_special_tokens = True
        return np.asarray(ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        """The text of ids; half-written characters become U+FFFD."""
        return str(self._tokenizer.decode(ids.tolist(), skip_special_tokens=False))

    def offsets(self, text: str) -> Ids:
        """(T, 2): where each token of the encoded text begins and ends, in characters."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).offsets, dtype=np.int32).reshape(-1, 2)


def load(folder: Path, *, rows: int = LARGEST_TOKEN) -> Tokenizer:
    """The words of a transformers folder; raises ModelError, also where they hold a token beyond the `rows` of the embedding."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"There is no tokenizer.json in {folder}.", "Choose a complete transformers folder.")
    with _refusing(folder):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_truncation()  # as some files bid, for what they were made for
        tokenizer.no_padding()
        if hasattr(tokenizer.model, "dropout"):
            tokenizer.model.dropout = None  # with which a text is other tokens each time
        chat = read_chat(folder)
        stop = tokenizer.token_to_id(chat.stop) if chat and chat.stop else None  # what ends a turn, not a document
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
def _refusing(folder: Path) -> Iterator[None]:
    """Whatever a tokenizer raises over its own file becomes ModelError, its panics too, which are no Exception."""
    try:
        yield
    except (WaggleError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelError(f"The tokenizer in {folder} cannot be read: {error}.", "Choose another model.") from error


def _make_special(tokenizer: tokenizers.Tokenizer, stop: int) -> None:
    """Let the stop token be special though its file does not say so, as transformers does. What else is in there is a word
    like any other: an honest text may hold it."""
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
