"""JSON lines between our own processes. Strict: both ends ship together, so what cannot be read is a fault, not a guest."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from waggle.core.errors import UNREADABLE, EngineError
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import AnyEvent

MAX_LINE = 16 * 1024 * 1024
LONGEST_SHOWN = 4000  # characters of a text of the model or of a peer that a window shows, and so is told

_encoder = msgspec.json.Encoder()
_events: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_commands: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


def line(message: AnyEvent | AnyCommand) -> bytes:
    """One message as one line, newline included."""
    return _encoder.encode(message) + b"\n"


def event(text: bytes) -> AnyEvent:
    """Read one event line; raises EngineError when it is not one of this version's events."""
    try:
        return _events.decode(text)
    except UNREADABLE as error:
        raise EngineError(f"The engine said something unknown: {error}.", "Window and engine must be of one version.") from error


def command(text: bytes) -> AnyCommand:
    """Read one command line; raises EngineError."""
    try:
        return _commands.decode(text)
    except UNREADABLE as error:
        raise EngineError(f"This command cannot be read: {error}.", "Window and engine must be of one version.") from error


def recording(path: Path) -> Iterator[AnyEvent | None]:
    """The events of a recorded run, oldest first; None stands for a line that this version does not know."""
    with path.open("rb") as lines:
        while text := lines.readline(MAX_LINE + 1):
            if len(text) > MAX_LINE:  # no engine of ours says so much at once
                while text and not text.endswith(b"\n"):
                    text = lines.readline(MAX_LINE + 1)
                yield None
                continue
            try:
                yield _events.decode(text)
            except UNREADABLE:
                yield None
