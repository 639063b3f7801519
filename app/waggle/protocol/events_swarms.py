"""Events about swarms: those the person knows, the choices for a new one, and invites.

Invites may contain the key of a private swarm: they are sent to the asking client only, and never recorded.
"""

from typing import Literal

import msgspec

from waggle.core.message import NOTHING, Message
from waggle.protocol.events import Difficulty, Event


class SpecialtyOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A specialty for a new swarm, with a sample question for each of its difficulties."""

    dataset: str
    title: str
    topic: str
    samples: dict[Difficulty, str]  # by level, easiest first
    unchecked: tuple[Difficulty, ...] = ()  # levels of which nobody checked the answers


class SpecialtyDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A specialty of a swarm, with its levels and a sample question of the first.

    People's own questions have no levels; `questions` is 0 for all others. `samples` are texts of a stranger.
    """

    title: str
    levels: tuple[str, ...] = ()
    sample: str = ""
    unchecked: tuple[str, ...] = ()  # of these levels, those of which nobody checked the answers
    samples: tuple[str, ...] = ()  # of people's own questions, cut after 300 characters
    questions: int = 0
    file_bytes: int = 0  # to download
    grader_title: str = ""


class SwarmDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm as a person sees it, joined or not. Its texts are from the author of its charter: plain text only."""

    charter: str  # hex
    name: str
    specialties: tuple[SpecialtyDetails, ...]
    model_hint: str = ""
    completion_characters: int = 0
    private: bool = False
    shipped: bool = False  # comes with Waggle
    created: bool = False  # here
    known: bool = False  # joined or created earlier
    active: bool = False
    members: int = 0  # when its invite was read last
    ends_solo: bool = False  # to join it is to end solo training
    for_class: bool = False  # this computer created it for a class
    member_name: str = ""  # that the person chose there


class EndedSwarm(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm that was joined or created earlier, in which nobody with this version can train. `why` is one or two sentences."""

    charter: str  # hex
    name: str
    why: Message


class KnownSwarms(Event, frozen=True, kw_only=True, tag="SwarmsTold"):
    """All stored swarms, the shipped ones first, and the specialties for a new one."""

    swarms: tuple[SwarmDetails, ...]
    offers: tuple[SpecialtyOffer, ...] = ()
    fixed: Message = NOTHING  # why no other swarm can be chosen; empty: it can
    ended: tuple[EndedSwarm, ...] = ()


class SwarmCreated(Event, frozen=True, kw_only=True, tag=True):
    swarm: SwarmDetails


class InviteRead(Event, frozen=True, kw_only=True, tag=True):
    """The swarm of an invite, which is not joined. `answered`: one of its seeds or gateways answered just now.

    `leads_to_others`: no address in it is known here yet, so that joining leads to others even if the node is in its swarm.
    """

    swarm: SwarmDetails
    answered: bool
    leads_to_others: bool = False


class InviteWritten(Event, frozen=True, kw_only=True, tag=True):
    """A new invite. `reach` says from where it works.

    `class_page` is the address at which this computer shows the page of a class, `join_page` that of the page by which others on
    its network join; each is empty if there is none.
    """

    charter: str
    link: str
    reach: Message = NOTHING
    class_page: str = ""
    join_page: str = ""


class StartedAgain(Event, frozen=True, kw_only=True, tag=True):
    """The engine saves everything and restarts within the same process."""

    reason: str


class SwarmUndecided(Event, frozen=True, kw_only=True, tag=True):
    """Nothing is trained until a person chooses a swarm (ChooseSwarm), or lets the model train alone meanwhile (swarm.solo).

    `why`: which swarm was chosen is not known any more; or it cannot be had, for the `reason`; or it was entered in vain, and
    the one of before is open to more people. `name` is the chosen swarm's, as far as that is known, `known` are those that can
    be chosen.
    """

    why: Literal["unknown", "unusable", "failed"]
    name: str = ""
    reason: Message = NOTHING
    advice: Message = NOTHING
    known: tuple[str, ...] = ()


SwarmEvent = SwarmUndecided | KnownSwarms | SwarmCreated | InviteRead | InviteWritten | StartedAgain
