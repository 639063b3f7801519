"""The event about messages that left this computer. It is sent to the asking client only, and never recorded."""

from typing import Literal

import msgspec

from waggle.protocol.events import Count, Event


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message that left this computer, verbatim; a very long one is cut. `to`: a peer's name and id; empty: all who ask.

    `yours`: it contains the person's own answer.
    """

    at: float
    kind: Literal["groups", "announcement", "greeting", "charter", "sheet", "questions"]
    to: str
    size: Count  # bytes, as they travelled
    text: str
    yours: bool = False


class SentMessages(Event, frozen=True, kw_only=True, tag="SentTold"):
    """The last messages that left this computer, newest first."""

    messages: tuple[SentMessage, ...]
