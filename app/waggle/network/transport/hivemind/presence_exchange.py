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

    def __init__(self, identity: Identity, clock: Callable[[], float] = time.time, home_salt: bytes = b"") -> None:
        self._identity, self._process, self._clock = identity, presence.new_process(home_salt), clock
        self._knows_home, self._is_reported = bool(home_salt), False
        self._stated: OrderedDict[tuple[bytes, bytes], int] = OrderedDict()  # by witness and process elsewhere, its last time
        started_at = round(1000 * clock())
        self._twin = DuplicateNodeDetector(lambda: started_at)

    async def ask(self, peer_id: bytes, exchange: Exchange) -> bool:
        """Leave our statement with a peer. True once, as soon as it is certain that another process uses our identity.

        A process of another home runs if a witness has a later statement of it than before, whatever the clocks of both say. One
        of this home may be an earlier run: then a statement from before our start is no proof, and a single one may be of a time
        when the clock was ahead.
        """
        try:
            answer = await exchange(peer_id, presence.write(self._identity, self._process, self._clock()))
            other = presence.read(answer, self._identity.peer_id) if answer else None
        except (PeerAway, BadRecord):  # it is of a version that does not know the question, or invents an answer
            return False
        if other is None or other.process == self._process or self._is_reported:
            return False
        self._is_reported = self._twin.observe(other.at) or self._runs_elsewhere(peer_id, other)
        return self._is_reported

    def _runs_elsewhere(self, witness: bytes, other: presence.Presence) -> bool:
        """Whether it is a process of another home, and has stated itself to this witness anew."""
        size = presence.HOME_BYTES
        if not self._knows_home or other.process[:size] == self._process[:size]:
            return False
        before = self._stated.pop((witness, other.process), None)
        self._stated[witness, other.process] = other.at
        while len(self._stated) > MOST_PEERS:
            self._stated.popitem(last=False)
        return before is not None and other.at > before
