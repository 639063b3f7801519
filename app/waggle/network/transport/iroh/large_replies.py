"""How many long replies are under way at a time: until a peer has acknowledged a reply, QUIC keeps all of it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TOGETHER, OF_RANGE = 24, 4  # longer than one piece; a payload has 2 MiB at most


class LargeReplies:
    """Places for long replies, of which an address range gets a few. Belongs to one event loop."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(TOGETHER)
        self._ranges: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, source: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it."""
        self._users[source] += 1
        try:
            async with self._ranges.setdefault(source, asyncio.Semaphore(OF_RANGE)), self._places:
                yield
        finally:
            self._users[source] -= 1
            if not self._users[source]:
                del self._users[source], self._ranges[source]
