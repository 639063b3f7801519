"""Limits on the calls of peers: a quota in front of every handler, the DHT's own handlers too."""

import logging
import time
from collections import Counter
from typing import Any

from waggle.core.peer_id import is_peer_id, short_id
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import AddressRangeRateLimit, RateLimit, all_allow
from waggle.network.transport.hivemind.peer_polling import ThrottledRefresh
from waggle.network.transport.interface import Services

CALLS_RATE, CALLS_BURST = 40.0, 400.0  # a second and at once, from one peer, of all kinds together
BYTES_RATE, BYTES_BURST = 100e3, 2e6  # the same for the bytes of the calls
log = logging.getLogger(__name__)

RANGE = 8.0  # times as much of both for all peers of one address range
WAITING, WAITING_OF_ONE = 2048, 32  # calls of newcomers, each of up to 4 KiB, of all together and of one
REFRESH_S = 0.1  # between two polls of who is connected, however many newcomers call
FOUND_RATE, FOUND_BURST = 0.5e6, 8e6  # bytes of directory entries sent to one source; a read is mostly 16 kB


class CallRefused(Exception):
    """A call that is not answered: its sender asks too much, or is blocked here. hivemind tells the sender, and continues."""


def _refused(peer_id: bytes, reason: str) -> CallRefused:
    """Log the reason. The exception has no text, because hivemind sends that to the caller."""
    if log.isEnabledFor(logging.DEBUG):  # writing an id in base58 takes time, and a flood of calls is refused here
        log.debug("a call of peer %s is refused: %s", short_id(peer_id), reason)
    return CallRefused()


class CallLimits:
    """How much of the limits each peer has used. Belongs to one daemon."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._calls, self._range_calls = RateLimit(CALLS_RATE, CALLS_BURST), RateLimit(RANGE * CALLS_RATE, RANGE * CALLS_BURST)
        self._bytes, self._range_bytes = RateLimit(BYTES_RATE, BYTES_BURST), RateLimit(RANGE * BYTES_RATE, RANGE * BYTES_BURST)
        self._answer_shares = AddressRangeRateLimit(FOUND_RATE, FOUND_BURST)
        self._waiting = Counter[bytes]()  # calls by newcomer
        self._refresh = ThrottledRefresh(services.refresh_peers, REFRESH_S)

    async def admit(self, peer_id: bytes, request: Any) -> str:
        """Count a call and return its source. Raises CallRefused if it is not to be answered."""
        size = request.ByteSize()
        if not is_peer_id(peer_id) or not self._services.admits(peer_id):
            raise _refused(peer_id, "its id is malformed, or it is blocked here")
        if not all_allow((self._calls, peer_id, 1.0), (self._bytes, peer_id, size)):
            raise _refused(peer_id, "it calls or sends too much")
        source = await self._source(peer_id)
        together = (self._range_calls, source.encode(), 1.0), (self._range_bytes, source.encode(), size)
        # All relayed peers have one and the same source: they must not be able to shut each other out.
        if source not in ("", RELAYED) and not all_allow(*together):
            raise _refused(peer_id, "its address range calls or sends too much")
        if len(getattr(request, "keys", ())) > 1:  # ours name one, and each key would bring a whole shard
            raise _refused(peer_id, "it asks for several keys at once")
        if b"" in getattr(request, "subkeys", ()):  # an empty subkey stores a whole dictionary; ours store one entry
            raise _refused(peer_id, "it stores a whole dictionary at once")
        if any(getattr(request, "in_cache", ())):  # ours never set it: the answer would come from a cache, without the shard
            raise _refused(peer_id, "it says what its cache holds")
        return source

    async def _source(self, peer_id: bytes) -> str:
        """The source of a peer, after a new poll if it is a newcomer. Raises CallRefused if it has left.

        Without the poll, new names would count for no address range.
        """
        source = self._services.source(peer_id)
        if source is None:
            if self._waiting.total() >= WAITING or self._waiting[peer_id] >= WAITING_OF_ONE:
                raise _refused(peer_id, "too many calls of newcomers wait")
            self._waiting[peer_id] += 1
            try:
                await self._refresh.later_than(time.monotonic())
            finally:
                self._waiting -= Counter((peer_id,))  # drops the peer's entry at 0
            source = self._services.source(peer_id)
        if source is None:
            raise _refused(peer_id, "it left before its address was known")
        return source

    def trim(self, peer_id: bytes, source: str, answer: Any) -> None:
        """Remove the entries from an answer if its receiver has used up its share of them; the neighbours of the key stay.

        Neighbours are small, and without them nobody could store here what belongs here, or search further.
        """
        results = getattr(answer, "results", ())
        size = sum(len(each.value) for each in results)
        if not size:
            return
        allowed = self._answer_shares.allows(peer_id, source, answer.ByteSize())
        if not allowed or not self._services.may_send_directory(source.encode() or peer_id, size):
            log.debug("a directory answer is sent without its %d bytes of entries: a limit is reached", size)
            for each in results:
                for field in ("type", "value", "expiration_time"):
                    each.ClearField(field)
