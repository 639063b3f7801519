"""The doors to the swarm, as the rest of a node sees them: peers themselves (`connection.py`), or gateways (`light.py`)."""

from collections.abc import Sequence
from typing import Protocol

from waggle.swarm.dht import Connected


class Network(Protocol):
    """The directory and the payloads. Every method raises PeerAway where nobody answers."""

    async def announce(self, key: str, peer_id: bytes, signed: bytes, expires_at: float) -> bool: ...

    async def read(self, key: str) -> dict[bytes, bytes]:
        """Signed announcements by peer id, each of them verified."""
        ...

    async def lodge(self, sha256: bytes, blob: bytes) -> tuple[bytes, ...]:
        """Leave a payload with those who give it out for us; their peer ids, none where we do that ourselves."""
        ...

    async def pull(self, peer_id: bytes, sha256: bytes, seconds: float, certificate: bytes = b"") -> bytes: ...

    async def greet(self, peer_id: bytes) -> bytes: ...

    async def peers(self) -> Sequence[Connected]: ...

    async def addresses(self) -> list[str]: ...


class Door(Protocol):
    """Keeps a Network open."""

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
