"""Looks at who is connected: each costs as much more as there are connections, and strangers decide how many those are."""

import asyncio
import math
import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

PART = 0.1  # of the time may go into looks
Result = TypeVar("Result")


class Effort:
    """How long what is awaited keeps the processor busy: what it waits for meanwhile, and others do, is not in it."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self.seconds = 0.0

    @property
    def rest(self) -> float:
        """Seconds before the next, so that it takes no more than its part of the time."""
        return self.seconds * (1 - PART) / PART

    @types.coroutine
    def of(self, call: Awaitable[Result]) -> Generator[Any, Any, Result]:
        """What the call gives or raises; each of its steps is measured."""
        steps = call.__await__()
        step: Callable[[Any], Any] = steps.send
        answer: Any = None
        while True:
            began = self._clock()
            try:
                awaited = step(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.seconds += self._clock() - began
            try:
                step, answer = steps.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001 - passed on, being cancelled too
                step, answer = steps.throw, error


class Looks:
    """One look for all who ask for it at the same time, not more often than every `pause` seconds, nor than may be."""

    def __init__(
        self,
        look: Callable[[], Awaitable[None]],
        pause: float,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = time.thread_time,
    ) -> None:
        self._look, self._pause = look, pause
        self._clock, self._busy = clock, busy
        self._began, self._next = -math.inf, -math.inf
        self._looking: asyncio.Task[None] | None = None

    async def since(self, asked_at: float) -> None:
        """Return after a look that began later: who has just come is in it, and who is not has gone. Raises what looking does."""
        while self._began < asked_at:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._once())
                self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())  # heard, though all have left
            await asyncio.shield(self._looking)  # whoever asks and leaves ends it for nobody else

    async def _once(self) -> None:
        await asyncio.sleep(self._next - self._clock())
        began, effort = self._clock(), Effort(self._busy)
        try:
            await effort.of(self._look())
        finally:
            self._next = max(began + self._pause, self._clock() + effort.rest)
        self._began = began
