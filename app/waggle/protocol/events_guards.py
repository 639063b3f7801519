"""The event about guards: what halves, holds back, drops or leaves out something for more than a minute, to protect something."""

from typing import Literal

import msgspec

from waggle.core.message import Message
from waggle.protocol.events import Event
from waggle.protocol.schedule import Moment

GuardName = Literal["memory", "traffic", "record", "sharing", "disk", "network"]


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard does, why, and what would end it."""

    name: GuardName
    says: Message
    ends: Message
    since: Moment


class GuardsChanged(Event, frozen=True, kw_only=True, tag=True):
    """All guards that act now, for more than a minute."""

    guards: tuple[Guard, ...] = ()
