"""What an inspection reports, and the messages between it and its child process."""

from typing import Annotated, Literal

import msgspec

from waggle.core.message import NOTHING, Message, unpacked_message
from waggle.tasks.sandbox import messages

Part = Literal["template", "configuration", "weights", "tokenizer"]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class ReadPart(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Read a part of the model in a folder, which is named in the bytes of this system."""

    part: Part
    folder: bytes


class Refused(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Why the model cannot be opened: title and advice of a ModelError."""

    title: Message
    advice: Message


class TemplateReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Whether there is a chat template that can be used, and why it cannot; empty if it can or if there is none."""

    usable: bool = False
    problem: Message = NOTHING


class ConfigurationReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """`generic`: transformers computes this model. `rows` of the embedding, `context` in tokens."""

    model_type: Name
    generic: bool
    rows: Count
    context: Count
    parameters: Count


class WeightsReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The number of weights in the files, their bytes, and the precisions in the terms of safetensors."""

    parameters: Count
    file_bytes: Count
    precisions: tuple[Name, ...]


class TokenizerReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The largest token id that a text can have, and the ids that end a completion."""

    largest: Count
    stops: tuple[Count, ...]


Reply = Refused | TemplateReport | ConfigurationReport | WeightsReport | TokenizerReport

_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, dec_hook=unpacked_message)


def reply_of(frame: bytes) -> Reply:
    """Decode a reply of the child. Raises EOFError if it is malformed."""
    return messages.decode(frame, _replies)


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be opened. Parts that were not read are None."""

    configuration: ConfigurationReport | None = None
    weights: WeightsReport | None = None
    template: TemplateReport | None = None
    tokenizer: TokenizerReport | None = None
