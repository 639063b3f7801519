"""What a node and its transport ask of each other. Imports no transport; `choice.py` chooses one.

A node is given an `OpenTransport`, and gives it a `Callbacks`: what the node answers when others call, and what it wants to hear.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from waggle.network.identity.membership import Membership
from waggle.network.limits.address_ranges import Route, source_of
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.reputation import PeerReputation, ReputationTable
from waggle.network.messages.events import NetworkEvent


class PeerAway(Exception):
    """A peer, or our own daemon, did not answer. Never an error of this node: somebody else is asked, or later."""


DEPOSIT = 16_384  # bytes that a pull costs which brings nothing; through a gateway every pull, beside what it brings


@dataclass(frozen=True)
class Pong:
    """An answered ping: its round trip, and how far the peer's clock is ahead of ours."""

    delay_ms: float
    skew_s: float


@dataclass(frozen=True)
class Connected:
    """A peer that p2pd holds a connection to, and the address to find it again."""

    peer_id: bytes
    address: str
    relayed: bool

    @property
    def source(self) -> str:
        """The address range it comes from, or empty: itself."""
        return source_of(self.address, relayed=self.relayed)

    @property
    def route(self) -> Route:
        """How it is connected: who counts for itself has an address of one's own network."""
        if self.relayed:
            return "relay"
        return "direct" if self.source else "lan"


async def _nothing() -> None:
    return


async def _no_payload(_peer_id: bytes, _sha256: bytes) -> bytes:
    return b""


@dataclass(frozen=True)
class Services:
    """What this node answers: payload(who asks, sha256 and certificate), charter(sha256), greeting(); b"" where there is nothing.

    `admits` says whether a peer is answered at all, `source` whose share of calls and answers it uses (None: not known before
    the next `look` at who is connected), `may_tell` whether so many bytes of announcements may go to it, `member` whether an
    origin may announce under `digest`, which is kept before others.
    """

    payload: Callable[[bytes, bytes], Awaitable[bytes]] = _no_payload
    charter: Callable[[bytes], bytes] = lambda sha256: b""
    greeting: Callable[[], bytes] = lambda: b""
    admits: Callable[[bytes], bool] = lambda peer_id: True
    source: Callable[[bytes], str | None] = lambda peer_id: ""
    look: Callable[[], Awaitable[None]] = _nothing
    may_tell: Callable[[bytes, int], bool] = lambda source, size: True
    digest: bytes = b""
    member: Callable[[bytes, bytes], bool] = lambda peer_id, certificate: True


class Network(Protocol):
    """The directory and the payloads. Every method raises PeerAway where nobody answers."""

    async def announce(self, key: str, peer_id: bytes, signed: bytes, expires_at: float) -> bool: ...

    async def read(self, key: str) -> dict[bytes, bytes]:
        """Signed announcements by peer id, each of them verified."""
        ...

    @property
    def copies(self) -> int:
        """How often what is read comes in, each time from somebody else."""
        ...

    async def lodge(self, sha256: bytes, blob: bytes) -> tuple[bytes, ...]:
        """Leave a payload with those who give it out for us; their peer ids, none where we do that ourselves."""
        ...

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes: ...

    async def greet(self, peer_id: bytes) -> bytes: ...

    async def addresses(self) -> list[str]: ...


class Transport(Protocol):
    """Keeps a Network open. `calls` says whether this node calls peers itself; a gateway calls them for its clients."""

    calls: bool

    @property
    def dht(self) -> Network:
        """The open network; raises PeerAway while there is none."""
        ...

    @property
    def pid(self) -> int:
        """The network process; raises PeerAway where there is none."""
        ...

    async def start(self) -> None: ...

    async def meet(self) -> None: ...

    async def run(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """A node as its transport sees it. Every callable is called on the loop's thread and returns at once.

    `services` answers calls of peers. `report` takes events for the person. `met` hears who is connected and who answered a ping,
    `joined` that peers or gateways were reached after there were none, `greeted` why a peer takes no part here ("": it does).
    `trusted` names the peers to remember before others. `admission` shows and checks certificates of a private swarm, and
    `traffic` counts bytes and limits them.
    """

    services: Services
    report: Callable[[NetworkEvent], None]
    met: Callable[[list[Connected], dict[bytes, Pong]], None]
    joined: Callable[[], None]
    greeted: Callable[[bytes, str], None]
    trusted: Callable[[], set[bytes]]
    admission: Membership
    traffic: BandwidthLimiter


OpenTransport = Callable[[Callbacks], Transport]  # builds it; `start` connects it


async def standing_of(peer_id: bytes, trust: ReputationTable, transport: Transport) -> PeerReputation:
    """The standing of a peer that gave something: where it was dialled for that, it is met first, to see where it is."""
    if trust.of(peer_id).connection == "gone":
        with suppress(PeerAway):
            await transport.meet()
    return trust.of(peer_id)


async def fetch(
    transport: Transport,
    traffic: BandwidthLimiter,
    *,
    origin: bytes,
    via: Sequence[bytes],
    sha256: bytes,
    seconds: float,
    certificate: bytes,
    paid: Callable[[int], None] = lambda size: None,
) -> bytes:
    """A payload from its origin, or from those who give it out for it; empty where nobody does. What comes is counted and paid.

    `paid` is told how much came, whoever gave it and whatever it is; where a call was broken off, nobody knows how much did.
    Bytes of another hash are the origin's offence where it gives them itself; those of anybody else are passed over.
    Raises PeerAway while there is no network of our own.
    """
    for giver in via or (origin,):
        network, blob, size = transport.dht, b"", DEPOSIT
        try:
            with suppress(PeerAway):  # peers come and go: another gives it, or it is asked again later
                blob = await network.pull(giver, sha256, seconds, certificate)
                size = len(blob)
                traffic.count_received(size)
        finally:  # also where whoever asked has left meanwhile
            traffic.charge_received(size)
            paid(size)
        if blob and (giver == origin or hashlib.sha256(blob).digest() == sha256):
            return blob
    return b""
