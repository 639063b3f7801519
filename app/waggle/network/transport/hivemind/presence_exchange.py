"""Finds out whether another computer uses our identity, without announcements, which seeds do not have.

Each node leaves a signed statement of presence with connected peers, and gets back the newest one that another process with the
same identity left there. Peers cannot see two processes with one identity otherwise: libp2p takes them for one node.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from waggle.core.errors import BadRecord
from waggle.network.identity.duplicate_node import DuplicateNodeDetector
from waggle.network.identity.keys import Identity
from waggle.network.limits.rate_limits import RateLimit
from waggle.network.messages import presence
from waggle.network.transport.hivemind.call_limits import CallRefused
from waggle.network.transport.interface import PeerAway

RATE, BURST = 1 / 5, 8.0  # statements of one peer, a second and at once; copies of one identity share it
MOST_PEERS, MOST_PROCESSES = 2048, 3  # whose statements are stored, the newest of each process
Exchange = Callable[[bytes, bytes], Awaitable[bytes]]  # leaves a statement with a peer, and returns its answer


class StoredStatements:
    """What peers left here. A peer can fill its own place only, because its id is that of its connection."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._quota = RateLimit(RATE, BURST, clock)
        self._by_peer: OrderedDict[bytes, OrderedDict[bytes, bytes]] = OrderedDict()

    def exchange(self, peer_id: bytes, statement: bytes) -> bytes:
        """Store a peer's statement, and return the newest one of another process with its identity; b"" if there is none.

        Raises CallRefused for other sizes, and for a peer that states itself too often. Only its owner checks a statement.
        """
        if len(statement) != presence.BYTES or not self._quota.allows(peer_id):
            raise CallRefused
        own = self._by_peer.pop(peer_id, OrderedDict())
        process = statement[: presence.PROCESS_BYTES]
        own.pop(process, None)
        others = list(own.values())
        own[process] = statement
        while len(own) > MOST_PROCESSES:
            own.popitem(last=False)
        self._by_peer[peer_id] = own
        while len(self._by_peer) > MOST_PEERS:
            self._by_peer.popitem(last=False)
        return others[-1] if others else b""


class PresenceExchange:
    """Our side: states that we run, and reads what comes back. One for each process, as it names it."""

    def __init__(self, identity: Identity, clock: Callable[[], float] = time.time) -> None:
        self._identity, self._process, self._clock = identity, presence.new_process(), clock
        started_at = round(1000 * clock())
        self._twin = DuplicateNodeDetector(lambda: started_at)

    async def ask(self, peer_id: bytes, exchange: Exchange) -> bool:
        """Leave our statement with a peer. True once, as soon as it is certain that another process uses our identity.

        A statement from before our start is of an earlier run of this node, and a single one may be, if the clock was set back.
        """
        try:
            answer = await exchange(peer_id, presence.write(self._identity, self._process, self._clock()))
            other = presence.read(answer, self._identity.peer_id) if answer else None
        except (PeerAway, BadRecord):  # it is of a version that does not know the question, or invents an answer
            return False
        return other is not None and other.process != self._process and self._twin.observe(other.at)
