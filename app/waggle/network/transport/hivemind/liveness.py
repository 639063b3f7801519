"""Which of the neighbours that a peer names in the DHT are alive, checked before a search uses them.

A search keeps the nearest names that it hears of and asks nobody farther away, even if none of them answers. So ten made-up
names near a key, which take no time to make, would hide all who hold the key. (Ten live peers still can.)
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from waggle.network.limits.rate_limits import RateLimit

REST_S, LONGEST_REST_S = 5.0, 320.0  # in which no search asks a peer that did not answer; doubled after each failure in a row
WAIT_S = 2.0  # for the slowest name of one answer; a later answer counts for the next search
ALIVE_S, DEAD_S = 60.0, 5.0  # how long a result is believed
VAIN_RATE, VAIN_BURST = 1.0, 100.0  # dead names a second and at once from one peer; more are ignored
REMEMBERED = 4096  # names


class NeighbourLiveness:
    """Asks each name once for all searches that hear of it. Belongs to the event loop's thread."""

    def __init__(self, is_alive: Callable[[Any], Awaitable[bool]], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_alive = is_alive
        self._clock = clock
        self._results: OrderedDict[Any, tuple[bool, float]] = OrderedDict()  # name -> whether it is alive, valid until
        self._asking: dict[Any, asyncio.Task[None]] = {}
        self._vain = RateLimit(VAIN_RATE, VAIN_BURST, clock)

    async def alive(self, by: bytes, names: Collection[Any]) -> set[Any]:
        """Those of `names`, which the peer `by` named, that answer now or did lately."""
        for name in names:
            if name not in self._asking and self._result(name) is None and self._vain.allows(by):
                self._asking[name] = asyncio.create_task(self._ask(by, name))
        waited_for = [self._asking[name] for name in names if name in self._asking]
        if waited_for:
            await asyncio.wait(waited_for, timeout=WAIT_S)
        return {name for name in names if self._result(name)}

    def _result(self, name: Any) -> bool | None:
        """Whether it is alive; None if no valid result is known."""
        alive, until = self._results.get(name, (False, 0.0))
        return alive if until > self._clock() else None

    async def _ask(self, by: bytes, name: Any) -> None:
        try:
            alive = await self._is_alive(name)
        finally:
            del self._asking[name]
        if alive:
            self._vain.charge(by, -1.0)
        self._results[name] = alive, self._clock() + (ALIVE_S if alive else DEAD_S)
        self._results.move_to_end(name)
        if len(self._results) > REMEMBERED:
            self._results.popitem(last=False)


class SearchBackoff:
    """Peers that did not answer a search and are not asked for a while.

    Takes the place of hivemind's blacklist, which keeps every name that ever failed. Its methods have hivemind's names.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[Any, tuple[float, float]] = OrderedDict()  # name -> until when; how long the rest is (s)

    def __contains__(self, name: Any) -> bool:
        return self._failed.get(name, (0.0, 0.0))[0] > self._clock()

    def register_failure(self, name: Any) -> None:
        """Note that it did not answer."""
        if name in self:
            return
        _, before = self._failed.pop(name, (0.0, REST_S / 2))
        rest = min(LONGEST_REST_S, 2 * before)
        self._failed[name] = self._clock() + rest, rest
        if len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)

    def register_success(self, name: Any) -> None:
        """Note that it answered."""
        self._failed.pop(name, None)
