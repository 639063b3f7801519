"""What the network reports, in the past tense. Text that came from peers is untrusted."""

from typing import Literal

import msgspec

from waggle.core.message import Message
from waggle.network.limits.reputation import PeerReputation
from waggle.network.messages.comparison import Comparison
from waggle.tasks.rollout_group import JudgedGroup

Reach = Literal["connecting", "alone", "connected"]
Way = Literal["", "direct", "relay", "gateway"]  # how peers call us: unknown yet, directly, through seeds, not at all


class GroupsArrived(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of a peer were pulled and judged here."""

    origin: bytes
    round: int
    model: str
    groups: tuple[JudgedGroup, ...]


class RecordRejected(msgspec.Struct, frozen=True, kw_only=True):
    """Something from a peer broke a rule, and was dropped and counted: a whole message, or `count` groups of one."""

    origin: bytes
    reason: Message
    count: int = 1


class ReputationsLost(msgspec.Struct, frozen=True, kw_only=True):
    """The reputation file could not be read and was set aside: mutes and blocks are not in force."""


class PeerChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The reputation of a peer changed."""

    peer: PeerReputation


class ReachChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the connection. `tried` counts the addresses of the last attempt to join; `address` is ours, or empty."""

    reach: Reach
    peers: int
    tried: int = 0
    address: str = ""
    way: Way = ""


class NetworkRestarted(msgspec.Struct, frozen=True, kw_only=True):
    """The network process ended and was restarted with the same identity."""

    reason: str


class TrafficMeasured(msgspec.Struct, frozen=True, kw_only=True):
    """Payload bytes per second, over the last few seconds."""

    up: float
    down: float


class ClockSkewed(msgspec.Struct, frozen=True, kw_only=True):
    """This computer's clock and those of others differ by so many seconds; positive: theirs are ahead.

    `agreeing`: how many others have nearly the same time. One of them alone may be as wrong as we are.
    """

    seconds: float
    agreeing: int


class GatewayHidesPeers(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway keeps showing much less of the directory than another one: it may hide peers."""

    address: str
    listed: int
    known: int


class LeaderboardChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Answer sheets were scored here; this is how models compare now."""

    comparison: Comparison


class DuplicateIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Another computer uses our identity."""


class OwnSeed(msgspec.Struct, frozen=True, kw_only=True):
    """All seeds have our own identity, so they cannot be called. This one's address is not ours: it is a copy, or we are."""

    address: str


NetworkEvent = (
    GroupsArrived
    | RecordRejected
    | ReputationsLost
    | PeerChanged
    | ReachChanged
    | NetworkRestarted
    | TrafficMeasured
    | ClockSkewed
    | GatewayHidesPeers
    | LeaderboardChanged
    | DuplicateIdentity
    | OwnSeed
)
