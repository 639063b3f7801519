"""The directory as this node shows it to light clients: read at most once a second, however many of them ask."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.reputation import ReputationTable, trusted_peers
from waggle.network.transport.interface import PeerAway
from waggle.network.transport.tasks import end

READ_EVERY_S = 1.0
# So long the last list is shown while the directory cannot be read. Announcements that expired long ago would make a light
# client think that its clock is off.
STALE_S = 120.0


class DirectoryCache:
    """Belongs to the loop's thread. `read` reads a part of the directory; it raises PeerAway."""

    def __init__(
        self, read: Callable[[], Awaitable[dict[bytes, bytes]]], reputations: ReputationTable, bandwidth: BandwidthLimiter
    ) -> None:
        self._read = read
        self._reputations = reputations
        self._bandwidth = bandwidth
        self._read_at = -READ_EVERY_S  # of the last attempt, monotonic
        self._listed: tuple[float, dict[bytes, bytes]] = (0.0, {})  # when it was read, by a clock that counts sleep, and what
        self._reading: asyncio.Task[None] | None = None

    async def entries(self) -> dict[bytes, bytes]:
        """Signed announcements by peer id: current ones, or older ones while a bandwidth limit or strangers prevent reading."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._refresh())
        await asyncio.shield(self._reading)  # a client that leaves does not end it for the others
        read_at, listed = self._listed
        return listed if abs(time.time() - read_at) < STALE_S else {}

    async def close(self) -> None:
        """End a read under way."""
        if self._reading is not None:
            await end([self._reading])

    async def _refresh(self) -> None:
        if time.monotonic() - self._read_at < READ_EVERY_S or not self._bandwidth.may_read_directory():
            return
        with suppress(PeerAway):
            entries, trusted = await self._read(), trusted_peers(self._reputations)
            # A client is shown a limited number: trusted peers first, so that made-up names cannot crowd them out.
            order = sorted(entries, key=lambda origin: (origin not in trusted, random.random()))
            self._listed = time.time(), {origin: entries[origin] for origin in order}
        self._read_at = time.monotonic()  # after the read: a slow one must not be followed by the next at once
