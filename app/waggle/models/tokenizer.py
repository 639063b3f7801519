"""A policy's tokenizer, read from `tokenizer.json`; the same for every backend. Older forms are converted to it first.

Loaded with `tokenizers` itself, because transformers' AutoTokenizer silently replaces the pre-tokenizer of a qwen2 folder.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import tokenizers

from waggle.core.errors import ModelError, WaggleError
from waggle.core.message import NOTHING, Message
from waggle.models import stop_tokens, tokenizer_conversion
from waggle.models.chat_template import ChatTemplate, ChatTemplateError
from waggle.models.chat_template import read as read_chat
from waggle.models.prompt import Prompt, TextEncoder
from waggle.models.shared import model_files
from waggle.models.stop_tokens import LARGEST_TOKEN, StopTokens
from waggle.rl.batch import Ids

LARGEST = 1 << 27  # bytes of a tokenizer.json; that of 262,000 words has 33 MB


class Tokenizer:
    """Encodes prompts and decodes completions. Names of special tokens inside a text are plain text.

    `stops` are the tokens that end a completion: sampling stops at any of them. The first one ends a turn of a chat if the model
    has a chat template, else a text. `chat_problem` says why a chat template cannot be used; empty if it can, or if
    there is none.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        stops: StopTokens,
        chat: ChatTemplate | None = None,
        chat_problem: Message = NOTHING,
    ) -> None:
        self._tokenizer, self._chat, self._stops = tokenizer, chat, stops
        self.stops, self.chat_problem = stops.all, chat_problem
        self._first = _tokens_before(tokenizer)
        self._encoder = TextEncoder(tokenizer)
        self._turn = self._encoder.marked("".join(chat.pieces_around(1))).ids if chat else []

    def stop_for(self, *, chat: bool) -> int:
        """The token that ends a completion: a turn of a `chat`, or else a text."""
        return self._stops.turn if chat else self._stops.text

    def encode(self, text: str) -> Ids:
        """Token ids (T,) of a text, with nothing added."""
        return np.asarray(self._encoder.plain(text).ids, dtype=np.int32)

    def prompt(self, text: str) -> Prompt:
        """A plain text, after the tokens that preceded every training text (such as BOS)."""
        return Prompt(self._encoder, self._first, text, self._encoder.plain(text).ids, marked=False)

    @property
    def largest(self) -> int:
        """The largest token id that a prompt or completion can contain."""
        words = self._tokenizer.get_vocab(with_added_tokens=False).values()
        added = (token for token, each in self._tokenizer.get_added_tokens_decoder().items() if not each.special)
        return int(max([*self.stops, *words, *added, *self._first.tolist(), *self._turn]))

    @property
    def longest_token(self) -> int:
        """The characters of the longest token."""
        return max(map(len, self._tokenizer.get_vocab(with_added_tokens=True)), default=0)

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    def conversation(self, messages: Sequence[str]) -> Prompt:
        """Messages of a person and the model in turn, the person's last, in the chat template.

        Raises ModelError. Without a chat template only the last message counts: such a model knows no turns.
        """
        if self._chat is None:
            return self.prompt(messages[-1])
        pieces, words = self._chat.pieces_around(len(messages)), [message.strip() for message in messages]
        text = pieces[0] + "".join(chain.from_iterable(zip(words, pieces[1:], strict=True)))
        ids = self._encoder.marked(text).ids
        parts = [self._encoder.marked(piece).ids for piece in pieces]
        if self._specials(ids) != self._specials(chain.from_iterable(parts)):  # a message holds the name of a special token
            ids = self._between(parts, words)
        return Prompt(self._encoder, np.zeros(0, np.int32), text, ids, marked=True)

    def _specials(self, ids: Iterable[int]) -> list[int]:
        return [token for token in ids if token in self._encoder.specials]

    def _between(self, pieces: Sequence[list[int]], messages: Sequence[str]) -> list[int]:
        """Join the tokens of the template's pieces with messages, each encoded apart: plain text, whatever they contain."""
        ids = list(pieces[0])
        for text, piece in zip(messages, pieces[1:], strict=True):
            encoding, first, _ = self._encoder.inside(text)
            ids += encoding.ids[first:] + piece
        return ids

    def decode(self, ids: Ids) -> str:
        """The text of token ids; incomplete UTF-8 sequences become U+FFFD."""
        return self._encoder.decode(ids)

    def decode_continuation(self, ids: Ids) -> str:
        """The text that token ids add to a prompt: with the space at its beginning, which `decode` removes for some models."""
        return self._encoder.decode_inside(ids)


def load(folder: Path, *, rows: int = LARGEST_TOKEN) -> Tokenizer:
    """The tokenizer of a transformers folder. Raises ModelError, also for token ids beyond the `rows` of the embedding."""
    path = folder / tokenizer_conversion.TOKENIZER
    if not path.is_file():
        tokenizer_conversion.convert(folder)
    with _model_errors(folder):
        model_files.size_of(path, LARGEST)
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_truncation()  # some files ask for it, for their own purposes
        tokenizer.no_padding()
        if hasattr(tokenizer.model, "dropout"):
            tokenizer.model.dropout = None  # BPE dropout would encode the same text differently each time
        chat, problem = _chat_template(folder)
        stops = stop_tokens.read(folder, tokenizer, chat)
        result = Tokenizer(tokenizer, stops, chat, chat_problem=problem)
        if result.largest >= rows:
            raise ModelError(
                Message("The words of the model in %1 do not fit it: it has %2 tokens.", folder, rows), "Choose another model."
            )
    return result


def _chat_template(folder: Path) -> tuple[ChatTemplate | None, Message]:
    """The chat template if there is one, and why it cannot be used: such a model is trained in plain text."""
    try:
        return read_chat(folder), NOTHING
    except ChatTemplateError as error:
        return None, error.reason


def _tokens_before(tokenizer: tokenizers.Tokenizer) -> Ids:
    """The tokens that the file puts before every text, such as BOS."""
    marked = tokenizer.encode("a", add_special_tokens=True)
    return np.asarray(marked.ids[: [*marked.special_tokens_mask, 0].index(0)], np.int32)


@contextmanager
def _model_errors(folder: Path) -> Iterator[None]:
    """Turn everything that a tokenizer raises into ModelError; panics of Rust are BaseExceptions."""
    try:
        yield
    except (WaggleError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelError(Message("The tokenizer in %1 cannot be read: %2.", folder, error), "Choose another model.") from error
