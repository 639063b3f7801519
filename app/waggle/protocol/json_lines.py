"""JSON lines between Waggle's own processes. Decoding is strict: both ends ship together, so an unknown line is an error."""

from collections.abc import Generator
from pathlib import Path

import msgspec

from waggle.core.errors import UNREADABLE, EngineError
from waggle.core.message import Message, packed_message, unpacked_message
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import AnyEvent

MAX_LINE = 16 * 1024 * 1024  # bytes
LONGEST_SHOWN = 4000  # characters of a completion or a question in an event: a window shows no more

_encoder = msgspec.json.Encoder(enc_hook=packed_message)
_events: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent, dec_hook=unpacked_message)
_commands: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand, dec_hook=unpacked_message)


def line(message: AnyEvent | AnyCommand) -> bytes:
    """Encode a message as one line, with a newline."""
    return _encoder.encode(message) + b"\n"


def event(text: bytes) -> AnyEvent:
    """Decode an event. Raises EngineError for what is no event of this version."""
    try:
        return _events.decode(text)
    except UNREADABLE as error:
        raise EngineError(
            Message("The engine said something unknown: %1.", error), "Window and engine must be of one version."
        ) from error


def command(text: bytes) -> AnyCommand:
    """Decode a command. Raises EngineError for what is no command of this version."""
    try:
        return _commands.decode(text)
    except UNREADABLE as error:
        raise EngineError(
            Message("This command cannot be read: %1.", error), "Window and engine must be of one version."
        ) from error


def recording(path: Path) -> Generator[AnyEvent | None]:
    """The events of a recorded run, oldest first; None for each line that cannot be decoded."""
    with path.open("rb") as lines:
        while text := lines.readline(MAX_LINE + 1):
            if len(text) > MAX_LINE:  # not from an engine: skip it without reading it into memory
                while text and not text.endswith(b"\n"):
                    text = lines.readline(MAX_LINE + 1)
                yield None
                continue
            try:
                yield _events.decode(text)
            except UNREADABLE:
                yield None
