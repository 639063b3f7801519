"""A bystander: a member of a swarm that others name, and that counts who asks it for payloads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waggle.network.identity.keys import Identity
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services


class Bystander:
    """`calls` are the peer ids of those who asked it, once for each call. It has no payload."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.calls = list[bytes]()

    @asynccontextmanager
    async def present(self, seed_address: str) -> AsyncIterator[None]:
        """Be in the swarm of a seed while the block runs."""
        network = await open_network(SwarmOptions(host="127.0.0.1"), self.identity, Services(payload=self._give), port=0)
        try:
            await network.connect(seed_address)
            await network.find_neighbours()
            yield
        finally:
            await network.close()

    async def _give(self, peer_id: bytes, _request: bytes) -> bytes:
        self.calls.append(peer_id)
        return b""
