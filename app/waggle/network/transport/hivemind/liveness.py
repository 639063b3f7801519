"""Neighbours: which of those that a peer names in the DHT are there at all, asked before a search goes on with them.

A search keeps the nearest names that it hears of and asks nobody further away, also where none of them answers: ten made up
near a key, which takes no time, would hide from it all who hold that. Ten peers that are there still can.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from waggle.network.limits.rate_limits import RateLimit

REST_S, LONGEST_REST_S = 5.0, 320.0  # that no search asks whoever did not answer: twice as long after each time in a row
WAIT_S = 2.0  # for the slowest of one answer; whoever answers later is known at the next one
THERE_S, GONE_S = 60.0, 5.0  # for which somebody counts as there after an answer, and as gone after none
VAIN_RATE, VAIN_BURST = 1.0, 100.0  # names a second and at once that do not answer, by who named them: more are passed over
REMEMBERED = 4096  # names


class Neighbours:
    """Asks each name once, for all searches that hear of it. Belongs to the loop's thread."""

    def __init__(self, is_there: Callable[[Any], Awaitable[bool]], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_there = is_there
        self._clock = clock
        self._presence: OrderedDict[Any, tuple[bool, float]] = (
            OrderedDict()
        )  # name -> whether it is there; until when that counts
        self._asking: dict[Any, asyncio.Task[None]] = {}
        self._vain = RateLimit(VAIN_RATE, VAIN_BURST, clock)

    async def there(self, by: bytes, names: Collection[Any]) -> set[Any]:
        """Those of `names`, as `by` gave them, that answer in a while or did lately."""
        for name in names:
            if name not in self._asking and self._known(name) is None and self._vain.allows(by):
                self._asking[name] = asyncio.create_task(self._ask(by, name))
        waited_for = [self._asking[name] for name in names if name in self._asking]
        if waited_for:
            await asyncio.wait(waited_for, timeout=WAIT_S)
        return {name for name in names if self._known(name)}

    def _known(self, name: Any) -> bool | None:
        """Whether it is there, as far as that was heard lately."""
        there, until = self._presence.get(name, (False, 0.0))
        return there if until > self._clock() else None

    async def _ask(self, by: bytes, name: Any) -> None:
        try:
            there = await self._is_there(name)
        finally:
            del self._asking[name]
        if there:
            self._vain.charge(by, -1.0)
        self._presence[name] = there, self._clock() + (THERE_S if there else GONE_S)
        self._presence.move_to_end(name)
        if len(self._presence) > REMEMBERED:
            self._presence.popitem(last=False)


class Resting:
    """Who did not answer a search, and rests. hivemind has its own list of them, which keeps every name that ever failed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[Any, tuple[float, float]] = OrderedDict()  # name -> until when; how long that was

    def __contains__(self, name: Any) -> bool:
        return self._failed.get(name, (0.0, 0.0))[0] > self._clock()

    def register_failure(self, name: Any) -> None:
        """It did not answer."""
        if name in self:
            return
        _, before = self._failed.pop(name, (0.0, REST_S / 2))
        rest = min(LONGEST_REST_S, 2 * before)
        self._failed[name] = self._clock() + rest, rest
        if len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)

    def register_success(self, name: Any) -> None:
        """It answered."""
        self._failed.pop(name, None)
