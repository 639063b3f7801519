"""The doors to the swarm, as the rest of a node sees them: peers themselves (`connection.py`), or gateways (`light.py`)."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from waggle.network.limits.bandwidth import Traffic
from waggle.network.limits.reputation import Standing, Trust


class PeerAway(Exception):
    """A peer, or our own daemon, did not answer. Never an error of this node: somebody else is asked, or later."""


DEPOSIT = 16_384  # bytes that a pull costs which brings nothing; through a gateway every pull, beside what it brings


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


class Door(Protocol):
    """Keeps a Network open. `calls` says whether peers are called from here: a gateway does it for whoever goes through it."""

    calls: bool

    @property
    def dht(self) -> Network:
        """That of now; raises PeerAway while there is none."""
        ...

    @property
    def pid(self) -> int:
        """The network process; raises PeerAway where there is none."""
        ...

    async def start(self) -> None: ...

    async def meet(self) -> None: ...

    async def run(self) -> None: ...

    async def close(self) -> None: ...


async def standing_of(peer_id: bytes, trust: Trust, door: Door) -> Standing:
    """The standing of a peer that gave something: where it was dialled for that, it is met first, to see where it is."""
    if trust.of(peer_id).connection == "gone":
        with suppress(PeerAway):
            await door.meet()
    return trust.of(peer_id)


async def fetch(
    door: Door,
    traffic: Traffic,
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
        network, blob, size = door.dht, b"", DEPOSIT
        try:
            with suppress(PeerAway):  # peers come and go: another gives it, or it is asked again later
                blob = await network.pull(giver, sha256, seconds, certificate)
                size = len(blob)
                traffic.received(size)
        finally:  # also where whoever asked has left meanwhile
            traffic.pay(size)
            paid(size)
        if blob and (giver == origin or hashlib.sha256(blob).digest() == sha256):
            return blob
    return b""
