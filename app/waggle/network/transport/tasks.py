"""Background tasks of a transport: watched while they run, awaited when they end."""

import asyncio
from collections.abc import Sequence


async def watch(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the first failure among tasks; return when all have ended, by being cancelled too."""
    if tasks:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in ended:
            if not task.cancelled():
                task.result()


async def end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended: code of others may swallow being cancelled once."""
    while unfinished := [task for task in tasks if not task.done()]:
        for task in unfinished:
            task.cancel()
        await asyncio.wait(unfinished, timeout=1.0)
