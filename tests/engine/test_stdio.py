"""The engine's standard streams: a stdin that cannot be read."""

import asyncio
import os

from waggle.engine import stdio


async def test_a_stdin_that_cannot_be_read_has_ended(tmp_path):
    ended, heard = asyncio.Event(), []
    kept, unreadable = os.dup(0), os.open(tmp_path / "for writing", os.O_WRONLY | os.O_CREAT)
    try:
        os.dup2(unreadable, 0)
        async with asyncio.timeout(20):
            stdio.read_lines(asyncio.get_running_loop(), heard.append, ended.set)
            await ended.wait()
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, unreadable):
            os.close(descriptor)
    assert heard == []
