"""Answers peers that ask whether others can call them, by dialling them back (as AutoNAT does).

A peer is dialled only at the address that it called from, and neither a peer nor an address range may ask without limit.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from waggle.network.limits.rate_limits import RateLimit
from waggle.network.transport.hivemind.call_limits import RANGE, CallRefused
from waggle.network.transport.hivemind.peer_polling import ThrottledRefresh
from waggle.network.transport.interface import ConnectedPeer

QUESTIONS_RATE, QUESTIONS_BURST = 1 / 60, 3.0  # of one peer, a second and at once; RANGE times as much of one address range
LISTED_S = 1.0  # between two lists of all connected peers, however many peers ask
PATIENCE_S = 3.0
BANNER = b"\x13/multistream/1.0.0\n"  # the first message of every libp2p connection


class DialBack:
    """Dials the peers that ask. `connected` lists all connected peers. Belongs to one daemon."""

    def __init__(self, connected: Callable[[], Awaitable[Iterable[ConnectedPeer]]]) -> None:
        self._connected = connected
        self._peer_quota = RateLimit(QUESTIONS_RATE, QUESTIONS_BURST)
        self._range_quota = RateLimit(RANGE * QUESTIONS_RATE, RANGE * QUESTIONS_BURST)
        self._peers: Mapping[bytes, ConnectedPeer] = {}
        self._list = ThrottledRefresh(self._list_peers, LISTED_S)

    async def reaches(self, peer_id: bytes, port: int) -> bool:
        """Whether a node answers at this port of the peer. Raises CallRefused for a peer or range that asks too often."""
        if not port or not self._peer_quota.allows(peer_id):
            raise CallRefused
        await self._list.later_than(time.monotonic())
        peer = self._peers.get(peer_id)
        if peer is None or peer.relayed or not peer.address.startswith(("/ip4/", "/ip6/")):
            return False
        if peer.source and not self._range_quota.allows(peer.source.encode()):
            raise CallRefused
        return await _answers(peer.address.split("/")[2], port)

    async def _list_peers(self) -> None:
        self._peers = {peer.peer_id: peer for peer in await self._connected()}


async def _answers(host: str, port: int) -> bool:
    """Whether a libp2p node answers there."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(BANNER)
                return await reader.readexactly(len(BANNER)) == BANNER
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):  # no program, or another one: that is the answer
        return False
