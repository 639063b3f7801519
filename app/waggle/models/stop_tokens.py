"""Stop tokens: those that end what a model writes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import tokenizers

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.chat_template import ChatTemplate
from waggle.models.shared.configuration.model_config import table_in

LARGEST_TOKEN = 1 << 31  # ids are int32


@dataclass(frozen=True)
class StopTokens:
    """All stop tokens of a model, and those that end a `turn` of a chat and a plain `text`."""

    all: tuple[int, ...]
    turn: int
    text: int


def read(folder: Path, tokenizer: tokenizers.Tokenizer, chat: ChatTemplate | None) -> StopTokens:
    """Read the stop tokens of a transformers folder, and mark them as special in its tokenizer.

    They are the token with which the chat template ends a turn of the model, the `eos_token` of a model with a chat template, and
    `eos_token_id` of generation_config.json, or else of config.json. A token that any text may hold is none of them. Raises
    ModelError if there is none.
    """
    configured = declared_stops(folder)
    of_chat = [token for token in _of_chat(tokenizer, chat, configured) if token is not None] if chat else []
    declared = dict.fromkeys((*of_chat, *configured))
    if not declared:
        raise ModelError(Message("The model in %1 names no stop token.", folder), "Its config.json needs an eos_token_id.")
    _make_special(tokenizer, declared)
    usable = [stop for stop in declared if not _any_text_may_hold(tokenizer, stop)]
    if not usable or next(iter(declared)) not in usable:
        raise ModelError(Message("Any text may hold the stop token of the model in %1.", folder), "Choose another model.")
    return StopTokens(tuple(usable), usable[0], next((stop for stop in configured if stop in usable), usable[0]))


def _of_chat(tokenizer: tokenizers.Tokenizer, chat: ChatTemplate, configured: list[int]) -> Iterator[int | None]:
    """The token after a message of the model, and the `eos_token`."""
    eos = tokenizer.token_to_id(chat.stop) if chat.stop else None
    added, after = tokenizer.get_added_tokens_decoder(), chat.after_answer().lstrip()
    control = {token: each for token, each in added.items() if each.special or token in (*configured, eos)}
    ends = [token for token, each in control.items() if each.content and after.startswith(each.content)]
    yield max(ends, key=lambda token: len(added[token].content), default=None)
    yield eos


def declared_stops(folder: Path) -> list[int]:
    """The stop tokens of the first file that names any."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            declared = table_in(path).get("eos_token_id")
            stops = [stop for stop in (declared if isinstance(declared, list) else [declared]) if _is_token(stop)]
            if stops:
                return stops
    return []


def _is_token(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_TOKEN


def _make_special(tokenizer: tokenizers.Tokenizer, stops: dict[int, None]) -> None:
    """Mark stop tokens as special, even if the file does not, as transformers does.

    Other added tokens stay ordinary words: an honest text may contain them.
    """
    added = tokenizer.get_added_tokens_decoder()
    for token in (added[stop] for stop in stops if stop in added and not added[stop].special):
        token.special = True
        tokenizer.add_special_tokens([token])


def _any_text_may_hold(tokenizer: tokenizers.Tokenizer, stop: int) -> bool:
    tokenizer.encode_special_tokens = True
    return stop in tokenizer.encode(tokenizer.decode([stop], skip_special_tokens=False), add_special_tokens=False).ids
