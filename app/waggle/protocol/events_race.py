"""Events of a race of two practice swarms, which runs in a process of its own: one JSON line each, in the past tense."""

from typing import Annotated, Literal

import msgspec

from waggle.core.errors import UNREADABLE, LabError
from waggle.core.message import NOTHING, Message, packed_message, unpacked_message
from waggle.protocol.events import Count, Share

Lane = Literal["alone", "sharing"]
LANES: tuple[Lane, ...] = ("alone", "sharing")
Place = Annotated[int, msgspec.Meta(ge=0, lt=64)]  # index of a node or a specialty


class RaceBegan(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Both swarms are ready to play so many rounds. `specialties` are titles.

    `racers`: the nodes of each swarm; those at the same place in both have the same random numbers.
    """

    rounds: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    racers: Annotated[int, msgspec.Meta(ge=1, le=64)]
    specialties: tuple[str, ...]


class RoundRaced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Both swarms have played this round, counted from 1: their shares of right answers. `seconds` since the race began."""

    round: Count
    alone: Share
    sharing: Share
    seconds: float


class FirstSolved(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A node's first right answer in a specialty, and the node whose right answer there it had learned from; None: no node's."""

    lane: Lane
    round: Count
    racer: Place
    specialty: Place
    learned_from: Place | None = None


class Examined(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """After all rounds: right answers of `total` to reserved questions, on which neither swarm trained."""

    alone: Count
    sharing: Count
    total: Annotated[int, msgspec.Meta(ge=1)]


class RaceFailed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The race cannot go on, and why."""

    title: Message
    advice: Message = NOTHING


RaceEvent = RaceBegan | RoundRaced | FirstSolved | Examined | RaceFailed

_encoder = msgspec.json.Encoder(enc_hook=packed_message)
_decoder: msgspec.json.Decoder[RaceEvent] = msgspec.json.Decoder(RaceEvent, dec_hook=unpacked_message)


def line(event: RaceEvent) -> bytes:
    """Encode an event as one line, with a newline."""
    return _encoder.encode(event) + b"\n"


def read(text: bytes) -> RaceEvent:
    """Decode one line. Raises LabError for what is no event of this version."""
    try:
        return _decoder.decode(text)
    except UNREADABLE as error:
        raise LabError(Message("The race said something unknown: %1.", error), "Install Waggle again.") from error
