"""Events of a conversation with the current model and an earlier snapshot of it."""

from typing import Annotated

import msgspec

from waggle.protocol.events import Count, Event

TURNS = 40  # of one conversation
SENT = 12  # earlier turns that a message takes along
LONGEST = 2000  # characters of a message
LONGEST_REPLY = 16_000  # characters


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply so far of the model after so many rounds; 0: before any training. `ended`: the model ended it itself."""

    rounds: Count
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_REPLY)] = ""
    ended: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A person's message, and the replies of the current model and of the snapshot, in this order.

    `left_out` counts earlier turns that did not fit into the prompt. `stopped`: the person stopped the replies. `not_now` says
    why the newest saved state answers for the current model; empty if the current model does.
    """

    words: Annotated[str, msgspec.Meta(max_length=LONGEST)]
    replies: tuple[Reply, Reply]
    left_out: Count = 0
    finished: bool = False
    stopped: bool = False
    not_now: Annotated[str, msgspec.Meta(max_length=LONGEST)] = ""


class TurnProgress(Event, frozen=True, kw_only=True, tag="TurnGrew"):
    """A turn so far, numbered from 0: at most ten times a second, and when it is finished.

    All clients receive it; it is meant for the sender of the command.
    """

    command_id: str = msgspec.field(default="", name="said")  # of the Say that this turn answers
    number: Count
    turn: Turn


class ChatCleared(Event, frozen=True, kw_only=True, tag="TalkCleared"):
    """The conversation was deleted."""


class ChatOffer(Event, frozen=True, kw_only=True, tag="TalkOffered"):
    """The snapshots to chat with, by their rounds, oldest first. `taught`: the model was trained to chat."""

    moments: tuple[Count, ...]
    taught: bool


ChatEvent = TurnProgress | ChatCleared | ChatOffer
