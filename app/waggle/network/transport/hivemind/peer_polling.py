"""Polling who is connected, without using much of the processor.

A poll costs time in proportion to the connections, and strangers decide how many those are.
"""

import asyncio
import math
import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

CPU_SHARE = 0.1  # of the time that polls may keep the processor busy
Result = TypeVar("Result")


class CpuTimer:
    """Measures how long an awaitable keeps the processor busy, without the time in which it waits and other tasks run."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self.seconds = 0.0

    @property
    def rest(self) -> float:
        """Seconds to wait before the next poll, so that polls stay below CPU_SHARE of the time."""
        return self.seconds * (1 - CPU_SHARE) / CPU_SHARE

    @types.coroutine
    def measure(self, call: Awaitable[Result]) -> Generator[Any, Any, Result]:
        """Await the call, adding up the time of each of its steps; return its result, or raise what it raises."""
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
            except BaseException as error:  # noqa: BLE001 - passed on to the call, as are cancellations
                step, answer = steps.throw, error


class ThrottledRefresh:
    """Runs `refresh` once for all who wait for it at the same time, at most every `pause` seconds and within CPU_SHARE."""

    def __init__(
        self,
        refresh: Callable[[], Awaitable[None]],
        pause: float,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._refresh, self._pause = refresh, pause
        self._clock, self._cpu_clock = clock, cpu_clock
        self._began, self._next = -math.inf, -math.inf
        self._running: asyncio.Task[None] | None = None

    async def later_than(self, moment: float) -> None:
        """Wait until a refresh that began after `moment` has ended: who connected by then is in it. Raises what it raises."""
        while self._began < moment:
            if self._running is None or self._running.done():
                self._running = asyncio.create_task(self._run())
                # Retrieve its exception even if nobody waits for it any more: asyncio would report it.
                self._running.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.shield(self._running)  # a waiter that is cancelled does not cancel it for the others

    async def _run(self) -> None:
        await asyncio.sleep(self._next - self._clock())
        began, timer = self._clock(), CpuTimer(self._cpu_clock)
        try:
            await timer.measure(self._refresh())
        finally:
            self._next = max(began + self._pause, self._clock() + timer.rest)
        self._began = began
