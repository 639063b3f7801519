"""What a node answers when others call it, and how much: a quota before every handler, those of the DHT itself too."""

import logging
import time
from typing import Any

from waggle.core.peer_id import is_peer_id, short_id
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.limits.rate_limits import AddressRangeRateLimit, RateLimit, all_allow
from waggle.network.transport.hivemind.peer_polling import Looks
from waggle.network.transport.interface import Services

CALLS_RATE, CALLS_BURST = 40.0, 400.0  # a second and at once, from one peer, of every kind together
BYTES_RATE, BYTES_BURST = 100e3, 2e6  # the same for what is sent to us
log = logging.getLogger(__name__)

RANGE = 8.0  # times as much of both: all peers of one address range together
LOOK_S = 0.1  # between two looks at who has just come, however many call
FOUND_RATE, FOUND_BURST = 0.5e6, 8e6  # of what is found for one source: mostly 16 kB a read


class Refused(Exception):
    """A call that is not answered: its sender asks too much, or is blocked here. hivemind tells the sender, and goes on."""


def _refused(peer_id: bytes, reason: str) -> Refused:
    """The reason is for our log alone: hivemind sends the text of an exception to the caller."""
    if log.isEnabledFor(logging.DEBUG):  # writing an id out takes time, and a flood of calls is refused here
        log.debug("a call of peer %s is refused: %s", short_id(peer_id), reason)
    return Refused()


class Limits:
    """How much of that each peer has asked and had. Belongs to one life of p2pd."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._calls, self._calls_there = RateLimit(CALLS_RATE, CALLS_BURST), RateLimit(RANGE * CALLS_RATE, RANGE * CALLS_BURST)
        self._sent, self._sent_there = RateLimit(BYTES_RATE, BYTES_BURST), RateLimit(RANGE * BYTES_RATE, RANGE * BYTES_BURST)
        self._answer_shares = AddressRangeRateLimit(FOUND_RATE, FOUND_BURST)
        self._looks = Looks(services.look, LOOK_S)

    async def admit(self, peer_id: bytes, request: Any) -> str:
        """The source of a call. Raises Refused for one that is not answered."""
        size = request.ByteSize()
        if not is_peer_id(peer_id) or not self._services.admits(peer_id):
            raise _refused(peer_id, "its id is malformed, or it is blocked here")
        if not all_allow((self._calls, peer_id, 1.0), (self._sent, peer_id, size)):
            raise _refused(peer_id, "it calls or sends too much")
        source = await self._source(peer_id)
        together = (self._calls_there, source.encode(), 1.0), (self._sent_there, source.encode(), size)
        # Those relayed have one word for all, and shut nobody out by it.
        if source not in ("", RELAYED) and not all_allow(*together):
            raise _refused(peer_id, "its address range calls or sends too much")
        if len(getattr(request, "keys", ())) > 1:  # ours name one, and each would bring a whole shard
            raise _refused(peer_id, "it asks for several keys at once")
        if b"" in getattr(request, "subkeys", ()):  # a whole dictionary at once: ours send an entry
            raise _refused(peer_id, "it stores a whole dictionary at once")
        if any(getattr(request, "in_cache", ())):  # ours never say so, and the cache is answered instead of a whole shard
            raise _refused(peer_id, "it says what its cache holds")
        return source

    async def _source(self, peer_id: bytes) -> str:
        """Of a newcomer by a look made after it called: new names would else be counted nowhere. Raises Refused where it left."""
        source = self._services.source(peer_id)
        if source is None:
            await self._looks.since(time.monotonic())
            source = self._services.source(peer_id)
        if source is None:
            raise _refused(peer_id, "it left before its address was known")
        return source

    def tell(self, peer_id: bytes, source: str, answer: Any) -> None:
        """Hold what was found to what its asker may have: else take out all but the neighbours of the key.

        These are little, and without them nobody could store here what belongs here, or look further.
        """
        results = getattr(answer, "results", ())
        size = sum(len(each.value) for each in results)
        if not size:
            return
        allowed = self._answer_shares.allows(peer_id, source, answer.ByteSize())
        if not allowed or not self._services.may_tell(source.encode() or peer_id, size):
            for each in results:
                for field in ("type", "value", "expiration_time"):
                    each.ClearField(field)
