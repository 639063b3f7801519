"""What a node and its transport ask of each other. This module imports no transport; `choice.py` chooses one.

A node gets an `OpenTransport` and calls it with `Callbacks`: how the node answers peers, and what it wants to be informed of.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from waggle.network.identity.membership import Membership
from waggle.network.limits.address_ranges import Route, source_of
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.named_calls import NamedCalls
from waggle.network.limits.reputation import PeerReputation, ReputationTable
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.consent import Holder
from waggle.network.messages.events import NetworkEvent


class PeerAway(Exception):
    """A peer, or our own daemon, did not answer. This is normal: the caller asks another peer, or asks later.

    Its text is for the log: it never quotes a stranger. `received` is how many bytes of a payload had come.
    """

    def __init__(self, *text: str, received: int = 0) -> None:
        super().__init__(*text)
        self.received = received


# Bytes that a pull without a result is charged with. Through a gateway every pull is charged with them, beside its result.
FAILED_PULL_COST = 16_384


@dataclass(frozen=True)
class Pong:
    """An answered ping: its round trip, and how far the peer's clock is ahead of ours."""

    delay_ms: float
    skew_s: float


@dataclass(frozen=True)
class ConnectedPeer:
    """A peer that the transport is connected to, and the address to find it again."""

    peer_id: bytes
    address: str
    relayed: bool

    @property
    def source(self) -> str:
        """Its address range; empty for an address of the local network."""
        return source_of(self.address, relayed=self.relayed)

    @property
    def route(self) -> Route:
        """How it is connected. A peer without an address range is on the local network."""
        if self.relayed:
            return "relay"
        return "direct" if self.source else "lan"


async def _do_nothing() -> None:
    return


async def _no_payload(_peer_id: bytes, _sha256: bytes) -> bytes:
    return b""


@dataclass(frozen=True)
class Services:
    """How this node answers the calls of peers, and whom. Empty bytes mean that it has nothing.

    `payload` gets the caller's peer id, and a sha256 with a certificate behind it; `charter` gets a sha256. `admits` says
    whether a peer is answered at all. `source` is the address range that its calls count for; None means that it is unknown
    until the next `refresh_peers`. `may_send_directory` says whether so many bytes of announcements may go to a source.
    `member` says whether an origin with this certificate may announce under `digest`, the hash of our charter; `useful` whether
    an announcement under it deserves a place in the directory.
    """

    payload: Callable[[bytes, bytes], Awaitable[bytes]] = _no_payload
    charter: Callable[[bytes], bytes] = lambda sha256: b""
    handshake: Callable[[], bytes] = lambda: b""
    admits: Callable[[bytes], bool] = lambda peer_id: True
    source: Callable[[bytes], str | None] = lambda peer_id: ""
    refresh_peers: Callable[[], Awaitable[None]] = _do_nothing
    may_send_directory: Callable[[bytes, int], bool] = lambda source, size: True
    digest: bytes = b""
    member: Callable[[bytes, bytes], bool] = lambda peer_id, certificate: True
    useful: Callable[[Announcement], bool] = lambda announced: True


class Network(Protocol):
    """The directory and the peers' payloads. Every method raises PeerAway if nobody answers."""

    async def announce(self, key: str, peer_id: bytes, signed: bytes, expires_at: float) -> bool:
        """Put a signed announcement into the directory; whether it was stored."""
        ...

    async def read_directory(self, key: str) -> dict[bytes, bytes]:
        """Signed announcements by peer id, each of them verified."""
        ...

    @property
    def replicas(self) -> int:
        """How many peers send the whole answer of `read_directory`, for counting traffic."""
        ...

    async def upload(self, sha256: bytes, blob: bytes) -> tuple[Holder, ...]:
        """Hand a payload to gateways that serve it for us, and return them; none if we serve it ourselves."""
        ...

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes:
        """A payload, not necessarily with this hash; empty if the peer has none."""
        ...

    async def fetch_handshake(self, peer_id: bytes) -> bytes: ...

    async def addresses(self) -> list[str]:
        """Where others can reach this node, the most useful address first."""
        ...


class Transport(Protocol):
    """Keeps a Network open. `calls_peers` says whether this node calls peers itself; for a light client, gateways do."""

    calls_peers: bool

    @property
    def network(self) -> Network:
        """The open network. Raises PeerAway while there is none."""
        ...

    @property
    def pid(self) -> int:
        """The network process. Raises PeerAway if there is none."""
        ...

    @property
    def is_away(self) -> bool:
        """Whether the network process ended and has not started again."""
        ...

    async def start(self) -> None: ...

    async def refresh_peers(self) -> None:
        """Call `on_peers` with those that are connected now."""
        ...

    async def run(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """A node as its transport sees it. Every callable is called on the event loop's thread and returns at once.

    `services` answers peers. `report` takes events for the person. `membership` shows and checks certificates of a private swarm.
    `on_peers` gets all connected peers and who answered a ping, `on_joined` is called when the first peer or gateway answers,
    `on_handshake` gets why a peer takes no part here ("": it does). `trusted_peers` are remembered before others.
    `bandwidth` counts and limits bytes.
    """

    services: Services
    report: Callable[[NetworkEvent], None]
    membership: Membership
    on_peers: Callable[[list[ConnectedPeer], dict[bytes, Pong]], None] = lambda peers, pongs: None
    on_joined: Callable[[], None] = lambda: None
    on_handshake: Callable[[bytes, str], None] = lambda peer_id, refusal: None
    trusted_peers: Callable[[], set[bytes]] = set
    bandwidth: BandwidthLimiter = field(default_factory=BandwidthLimiter)


OpenTransport = Callable[[Callbacks], Transport]  # creates it; `start` connects it


async def reputation_of(peer_id: bytes, reputations: ReputationTable, transport: Transport) -> PeerReputation:
    """The reputation of a peer that gave something. If it was dialled for that, look first where it is connected from."""
    if reputations.of(peer_id).connection == "gone":
        with suppress(PeerAway):
            await transport.refresh_peers()
    return reputations.of(peer_id)


async def fetch(
    transport: Transport,
    bandwidth: BandwidthLimiter,
    *,
    origin: bytes,
    via: Sequence[bytes],
    sha256: bytes,
    seconds: float,
    certificate: bytes,
    paid: Callable[[int], None] = lambda size: None,
    named: NamedCalls | None = None,
    leave: float = 0.0,
) -> bytes:
    """A payload from its origin, or from those who serve it for the origin; empty if none of them does.

    `paid` gets the number of bytes that each try brought, whatever they are, or FAILED_PULL_COST if a call failed. Bytes with
    another hash are the origin's offence if it sent them itself; from anybody else they are ignored. `named` limits the calls to
    peers that only the announcement names, of which so many are left for other callers.
    Raises PeerAway while we have no network.
    """
    for giver in via or (origin,):
        network, blob, size = transport.network, b"", FAILED_PULL_COST
        others = named if giver != origin else None
        if others is not None and not others.begin(giver, leave):
            continue
        answered = False
        try:
            blob = await network.pull(giver, sha256, seconds, certificate)
            size, answered = len(blob), giver == origin or not blob or hashlib.sha256(blob).digest() == sha256
            bandwidth.count_received(size)
        except PeerAway as away:  # peers come and go: another one serves it, or it is asked again later
            size = max(size, away.received)
            bandwidth.count_received(away.received)
        finally:  # after a cancellation too
            bandwidth.charge_received(size)
            paid(size)
        if others is not None:  # not after a cancellation: then whoever asked has left, and the giver did not fail
            others.end(giver, answered=answered)
        if blob and answered:
            return blob
    return b""
