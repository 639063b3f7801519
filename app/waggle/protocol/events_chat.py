"""What the engine tells of a conversation: turns as they grow, answered by the model of now and by that of before."""

from typing import Annotated

import msgspec

from waggle.protocol.events import Count, Event

TURNS = 40  # of one conversation
SENT = 12  # turns that go along with a message
LONGEST = 2000  # characters of a message
LONGEST_REPLY = 16_000


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model of so many rounds said so far; 0: before any training. `ended`: it came to an end by itself."""

    rounds: Count
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_REPLY)] = ""
    ended: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A person's words, and what the models of now and of before said to them, in this order.

    `left_out` counts earlier turns that were too long to be read again. `stopped`: the person ended it.
    """

    words: Annotated[str, msgspec.Meta(max_length=LONGEST)]
    replies: tuple[Reply, Reply]
    left_out: Count = 0
    finished: bool = False
    stopped: bool = False


class TurnGrew(Event, frozen=True, kw_only=True, tag=True):
    """The turn of this number, counted from 0, as far as it has come: at most ten times a second, and when it is finished.

    Whoever listens hears it; it is for who said this.
    """

    command_id: str = msgspec.field(default="", name="said")  # of the Say that this turn answers
    number: Count
    turn: Turn


class TalkCleared(Event, frozen=True, kw_only=True, tag=True):
    """The conversation is over, and forgotten."""


class TalkOffered(Event, frozen=True, kw_only=True, tag=True):
    """Whom one may talk with: the model after so many rounds each, oldest first; and whether it was ever taught to chat."""

    moments: tuple[Count, ...]
    taught: bool


TalkEvent = TurnGrew | TalkCleared | TalkOffered
