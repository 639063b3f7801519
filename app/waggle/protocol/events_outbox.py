"""What the engine tells about messages that left this computer: only whoever asks is told, and nothing of it is kept on file."""

from typing import Literal

import msgspec

from waggle.protocol.events import Count, Event


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message that left this computer, verbatim, a very long one cut. `to` is a peer's name and id; empty: whoever asks.

    `yours`: an answer of the person's own is in it.
    """

    at: float
    kind: Literal["groups", "announcement", "greeting", "charter", "sheet"]
    to: str
    size: Count  # bytes, as they travelled
    text: str
    yours: bool = False


class SentTold(Event, frozen=True, kw_only=True, tag=True):
    """The last few messages that left this computer, newest first. Never on file: only whoever asked is told."""

    messages: tuple[SentMessage, ...]
