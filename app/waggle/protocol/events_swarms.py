"""What the engine tells about swarms as such: those a person knows, what one can be made of, and invites.

Links may carry the key of a private swarm: whoever asked is told, and nothing of it goes into the record of a run.
"""

import msgspec

from waggle.protocol.events import Event


class SpecialtyOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of question that a new swarm may ask, with a sample question for each difficulty there is."""

    dataset: str
    title: str
    topic: str
    samples: dict[str, str]  # by difficulty, easiest first


class SpecialtyShown(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of question of a swarm. `difficulty` and `sample` are empty where its settings are its author's own."""

    title: str
    difficulty: str = ""
    sample: str = ""


class SwarmShown(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm as a person sees it, before joining and after. Its words come from whoever wrote its charter: plain text only."""

    charter: str  # hex
    name: str
    specialties: tuple[SpecialtyShown, ...]
    model_hint: str = ""
    completion_characters: int = 0
    private: bool = False
    shipped: bool = False  # the one that comes with Waggle
    created: bool = False  # here
    known: bool = False  # joined or created before
    active: bool = False
    members: int = 0  # when it was last asked
    ends_solo: bool = False  # this computer trains by itself now, and would not there


class SwarmsTold(Event, frozen=True, kw_only=True, tag=True):
    """Every swarm that is remembered, the shipped one first, and what a new one can be made of."""

    swarms: tuple[SwarmShown, ...]
    offers: tuple[SpecialtyOffer, ...] = ()
    fixed: str = ""  # why another one cannot be chosen, where that is so


class SwarmCreated(Event, frozen=True, kw_only=True, tag=True):
    swarm: SwarmShown


class InviteRead(Event, frozen=True, kw_only=True, tag=True):
    """What a link invites to. `answered`: a seed of it did just now; nothing has been joined."""

    swarm: SwarmShown
    answered: bool


class InviteWritten(Event, frozen=True, kw_only=True, tag=True):
    """`reach` says from where its addresses can be dialled."""

    charter: str
    link: str
    reach: str = ""


class StartedAgain(Event, frozen=True, kw_only=True, tag=True):
    """The engine leaves what it is in the middle of, keeps everything, and prepares anew within the same process."""

    reason: str


GatheringEvent = SwarmsTold | SwarmCreated | InviteRead | InviteWritten | StartedAgain
