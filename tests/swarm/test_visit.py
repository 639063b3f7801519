"""A visit ends in time, whatever addresses a link names."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from swarm.live import SOON, fresh_identity
from waggle.swarm.identity import text_of
from waggle.swarm.invite import MAX_SEEDS, Invite
from waggle.swarm.visit import Visited, visit


async def test_seeds_that_take_a_call_and_never_speak_do_not_hold_a_visit_up(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        writer.close()

    async with AsyncExitStack() as stack:
        seeds = []
        for i in range(MAX_SEEDS):
            server = await stack.enter_async_context(await asyncio.start_server(silent, "127.0.0.1", 0))
            peer = text_of(fresh_identity(tmp_path, str(i)).peer_id)
            seeds.append(f"/ip4/127.0.0.1/tcp/{server.sockets[0].getsockname()[1]}/p2p/{peer}")
        async with asyncio.timeout(SOON):
            found = await visit(Invite(charter=bytes(32), seeds=tuple(seeds)), "127.0.0.1", patience=0.5)
    assert found == Visited(charter=None, answered=False, members=0)
