"""What the swarm room tells, in the past tense. Text in it that came from peers is untrusted."""

from typing import Literal

import msgspec

from waggle.network.limits.reputation import Standing
from waggle.network.messages.comparison import Comparison
from waggle.tasks.rollout_group import JudgedGroup

Reach = Literal["connecting", "alone", "connected"]
Way = Literal["", "direct", "relay", "gateway"]  # how others call us: not known yet, straight, through the seeds, not at all


class GroupsArrived(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's groups were pulled, their questions made again, and judged here."""

    origin: bytes
    round: int
    model: str
    groups: tuple[JudgedGroup, ...]


class RecordDropped(msgspec.Struct, frozen=True, kw_only=True):
    """Something from a peer broke a rule, and was dropped and counted: a whole message, or `count` groups of one."""

    origin: bytes
    reason: str
    count: int = 1


class StandingsLost(msgspec.Struct, frozen=True, kw_only=True):
    """The file of standings could not be read: mutes and blocks are not in force. It was set aside."""


class PeerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What we know of a peer changed."""

    peer: Standing


class ReachFound(msgspec.Struct, frozen=True, kw_only=True):
    """How far we reach. `tried` counts addresses tried at the last attempt to join; `address` is ours, or empty."""

    reach: Reach
    peers: int
    tried: int = 0
    address: str = ""
    way: Way = ""


class NetworkRestarted(msgspec.Struct, frozen=True, kw_only=True):
    """The network process ended and was started again with the same identity."""

    reason: str


class TrafficCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Payload bytes per second over the last few seconds."""

    up: float
    down: float


class ClockSkewed(msgspec.Struct, frozen=True, kw_only=True):
    """This computer's clock is off by so many seconds, peers say; positive: theirs are ahead."""

    seconds: float


class GatewayDoubted(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway goes on showing much less of the directory than another one does."""

    address: str
    listed: int
    known: int


class SheetsMarked(msgspec.Struct, frozen=True, kw_only=True):
    """An answer sheet was marked here; this is how models compare now."""

    comparison: Comparison


class IdentityTwice(msgspec.Struct, frozen=True, kw_only=True):
    """Another computer announces with our identity."""


News = (
    GroupsArrived
    | RecordDropped
    | StandingsLost
    | PeerSeen
    | ReachFound
    | NetworkRestarted
    | TrafficCounted
    | ClockSkewed
    | GatewayDoubted
    | SheetsMarked
    | IdentityTwice
)
