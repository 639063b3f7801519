"""Test the standard streams with a reader that is gone, and a stdin that cannot be read."""

import asyncio
import os

from waggle.engine.control import stdio


async def test_what_waits_for_a_reader_that_is_gone_is_dropped():
    ours, theirs = os.pipe()
    writer = stdio.Writer(theirs)
    for _ in range(50):
        writer(b"x" * 100_000)
    assert writer.unwritten_bytes() > 4_000_000, "a pipe holds less"
    os.close(ours)
    async with asyncio.timeout(60):
        while writer.unwritten_bytes():
            await asyncio.sleep(0)
    writer(b"x")
    writer.close()
    assert writer.unwritten_bytes() == 0
    os.close(theirs)


async def test_a_stdin_that_cannot_be_read_has_ended(tmp_path):
    ended, lines = asyncio.Event(), []
    stdin_copy, unreadable = os.dup(0), os.open(tmp_path / "for writing", os.O_WRONLY | os.O_CREAT)
    try:
        os.dup2(unreadable, 0)
        async with asyncio.timeout(60):
            stdio.read_lines(asyncio.get_running_loop(), lines.append, ended.set)
            await ended.wait()
    finally:
        os.dup2(stdin_copy, 0)
        for descriptor in (stdin_copy, unreadable):
            os.close(descriptor)
    assert lines == []
