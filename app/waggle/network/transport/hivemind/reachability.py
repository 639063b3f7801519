"""Whether others can be called: whoever asks is, where it called us from, and no name or address range asks without end."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from waggle.network.limits.rate_limits import RateLimit
from waggle.network.transport.hivemind.peer_polling import Looks
from waggle.network.transport.hivemind.rpc_handlers import RANGE, Refused

ASKED_RATE, ASKED_BURST = 1 / 60, 3.0  # of one peer; RANGE times as much: of one address range
LISTED_S = 1.0  # between two listings of all who are connected, however many ask
PATIENCE_S = 3.0
BANNER = b"\x13/multistream/1.0.0\n"  # what libp2p says first


class Caller(Protocol):
    """A peer that is connected (see node.py)."""

    @property
    def peer_id(self) -> bytes: ...
    @property
    def address(self) -> str: ...
    @property
    def relayed(self) -> bool: ...
    @property
    def source(self) -> str: ...


class Callback:
    """Calls those who ask. `connected` lists everybody who is. Belongs to one life of p2pd."""

    def __init__(self, connected: Callable[[], Awaitable[Iterable[Caller]]]) -> None:
        self._connected = connected
        self._peer_quota, self._asked_there = (
            RateLimit(ASKED_RATE, ASKED_BURST),
            RateLimit(RANGE * ASKED_RATE, RANGE * ASKED_BURST),
        )
        self._listed: Mapping[bytes, Caller] = {}
        self._looks = Looks(self._look, LISTED_S)

    async def reaches(self, peer_id: bytes, port: int) -> bool:
        """Whether this port answers where the peer is. Raises Refused for whoever asks too much."""
        if not port or not self._peer_quota.allows(peer_id):
            raise Refused
        await self._looks.since(time.monotonic())
        here = self._listed.get(peer_id)
        if here is None or here.relayed or not here.address.startswith(("/ip4/", "/ip6/")):
            return False
        if here.source and not self._asked_there.allows(here.source.encode()):
            raise Refused
        return await _answers(here.address.split("/")[2], port)

    async def _look(self) -> None:
        self._listed = {peer.peer_id: peer for peer in await self._connected()}


async def _answers(host: str, port: int) -> bool:
    """Whether some libp2p node speaks there."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(BANNER)
                return await reader.readexactly(len(BANNER)) == BANNER
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):  # nobody, or somebody else: that is the answer
        return False
