"""Background tasks of a transport: watching them, and ending them."""

import asyncio
from collections.abc import Sequence
from typing import Any


async def watch(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the first failure of a task. Return when all have ended or were cancelled."""
    if tasks:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in ended:
            if not task.cancelled():
                task.result()


async def end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended: a library may swallow the first cancellation."""
    while unfinished := [task for task in tasks if not task.done()]:
        for task in unfinished:
            task.cancel()
        await asyncio.wait(unfinished, timeout=1.0)
