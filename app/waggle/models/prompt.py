"""What a model reads before it answers, and how a text goes on after it.

Prompt and answer are one text: a tokenizer may put a mark at the beginning of a text (SentencePiece's word boundary) that it does
not put in the middle, so an answer that is encoded alone has other tokens than the model was taught. The rule for what is
sampled and what is learned:

- A prompt has the tokens that its text has alone. The policy samples after exactly these.
- A text that follows has the rest of the tokens of both as one text, if these begin with the prompt's.
- If they do not, because the last letters of the prompt and the first of the text are one token, the prompt keeps its own tokens,
  and the text has those that it has in the middle of any text. For no policy ever writes a token that begins in its prompt.
"""

import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tokenizers

from waggle.rl.batch import Ids

ANCHOR = "\ue000"  # U+E000 is a private use character: it is not merged with any letter
LETTER = "a"


class TextEncoder:
    """A tokenizer that encodes plain text, in which names of special tokens are words, and text with special tokens.

    Usable from any thread: one setting of the tokenizer decides between the two.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer, self._lock = tokenizer, threading.Lock()
        self._tokenizer.encode_special_tokens = True  # or "<|eos|>" in a peer's text would become a stop token
        self._anchor = self.plain(ANCHOR).ids
        # not <unk>, which any text may hold
        self.specials = {token for token, each in tokenizer.get_added_tokens_decoder().items() if each.special} - {*self._anchor}
        self._letter = self.plain(LETTER).ids
        self._decoded_letter = self._decode(self._letter)
        self._marks_beginnings = bool(self._anchor) and self.plain(ANCHOR + LETTER).ids != self._anchor + self._letter

    def plain(self, text: str) -> tokenizers.Encoding:
        with self._lock:
            return self._tokenizer.encode(text, add_special_tokens=False)

    def marked(self, text: str) -> tokenizers.Encoding:
        """Encode a text in which names of special tokens are special."""
        with self._lock:
            self._tokenizer.encode_special_tokens = False
            try:
                return self._tokenizer.encode(text, add_special_tokens=False)
            finally:
                self._tokenizer.encode_special_tokens = True

    def inside(self, text: str) -> tuple[tokenizers.Encoding, int, int]:
        """Encode plain text as in the middle of another.

        Returns an encoding, and the position in it of the text's first token and of its first character.
        """
        if self._marks_beginnings:
            encoding, first = self.plain(ANCHOR + text), len(self._anchor)
            if encoding.ids[:first] == self._anchor:
                return encoding, first, len(ANCHOR)
        return self.plain(text), 0, 0

    def decode(self, ids: Ids) -> str:
        """The text of token ids; incomplete UTF-8 sequences become U+FFFD."""
        return self._decode(ids.tolist())

    def decode_inside(self, ids: Ids) -> str:
        """The text of token ids in the middle of a text: a space at its beginning stays, which some decoders remove."""
        whole = self._decode([*self._letter, *ids.tolist()])
        return whole.removeprefix(self._decoded_letter) if whole.startswith(self._decoded_letter) else self.decode(ids)

    def _decode(self, ids: list[int]) -> str:
        with self._lock:
            return str(self._tokenizer.decode(ids, skip_special_tokens=False))


@dataclass(frozen=True, eq=False)
class Prompt:
    """A text and its tokens, which a policy continues.

    `first` are tokens before the text, such as BOS. In a `marked` text the names of special tokens are special, in others plain.
    """

    encoder: TextEncoder
    first: Ids
    text: str
    words: list[int]  # the tokens of the text
    marked: bool

    @cached_property
    def ids(self) -> Ids:
        """(T,) all tokens."""
        return np.concatenate([self.first, np.asarray(self.words, np.int32)])

    def followed_by(self, text: str) -> "Prompt":
        """This prompt and a plain text after it. Its tokens begin with those of this prompt."""
        words = [*self.words, *self.continuation(text).tolist()]
        return Prompt(self.encoder, self.first, self.text + text, words, self.marked)

    def continuation(self, text: str) -> Ids:
        """Token ids (T,) of a plain text that follows."""
        encoding, first, _ = self._encode_after(text)
        return np.asarray(encoding.ids[first:], np.int32)

    def offsets(self, text: str) -> Ids:
        """(T, 2): the first and the last character (exclusive) in a text that follows of each of its tokens."""
        encoding, first, beginning = self._encode_after(text)
        offsets = np.asarray(encoding.offsets[first:], np.int32).reshape(-1, 2) - np.int32(beginning)
        return offsets.clip(min=0)

    def _encode_after(self, text: str) -> tuple[tokenizers.Encoding, int, int]:
        whole = (self.encoder.marked if self.marked else self.encoder.plain)(self.text + text)
        ids, count = whole.ids, len(self.words)
        if ids[:count] == self.words and (not self.marked or self.encoder.specials.isdisjoint(ids[count:])):
            return whole, count, len(self.text)
        return self.encoder.inside(text)
