"""Messages between a conversion and its child process. Files are named in the bytes of this system."""

from typing import Annotated

import msgspec

from waggle.core.message import Message, unpacked_message
from waggle.tasks.sandbox import messages

Name = Annotated[str, msgspec.Meta(max_length=200)]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class DescribeModel(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Read a file but for its weights. The first message."""

    path: bytes


class ReadPiece(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Read the next piece of the weight of this name."""

    name: str


class StoredWeight(msgspec.Struct, frozen=True, array_like=True):
    """A weight under transformers' name, with its precision in the terms of safetensors."""

    name: Name
    precision: Name
    shape: Annotated[tuple[Size, ...], msgspec.Meta(max_length=8)]


class ModelDescription(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The contents of the text files of a transformers folder, and its weights."""

    config: str
    tokenizer: str
    tokenizer_config: str
    generation_config: str
    weights: tuple[StoredWeight, ...]


class Piece(msgspec.Struct, frozen=True, tag=True, array_like=True):
    content: bytes


class Refused(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Why a file cannot be converted, as a clause, and whether another copy of it may be whole."""

    why: Message
    is_damaged: bool = False


Reply = ModelDescription | Piece | Refused

_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, dec_hook=unpacked_message)


def reply_of(frame: bytes) -> Reply:
    """Decode a reply of the child. Raises EOFError if it is malformed."""
    return messages.decode(frame, _replies)
