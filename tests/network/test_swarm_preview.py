"""A preview ends in time, whatever addresses a link names."""

import asyncio
import hashlib
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from network.loopback import SOON, fresh_identity
from waggle.core.errors import CharterError, SwarmError
from waggle.core.peer_id import text_of
from waggle.network.messages.invite import MAX_SEEDS, Invite
from waggle.network.messages.options import SwarmOptions
from waggle.network.swarm_preview import SwarmPreview, preview_swarm
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import encode
from waggle.tasks.shipped_swarms import first_swarm


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
            result = await preview_swarm(Invite(charter=bytes(32), seeds=tuple(seeds)), "127.0.0.1", patience=0.5)
    assert result == SwarmPreview(charter=None, answered=False, members=0)


async def test_a_live_seed_whose_charter_names_a_file_of_this_computer_is_refused_in_words(tmp_path: Path) -> None:
    setting = b'"settings":{"data_file":"/etc/machine-id","max_word_len":500},"title"'
    hostile = encode(first_swarm()).replace(b'"title"', setting, 1)
    digest = hashlib.sha256(hostile).digest()
    services = Services(digest=digest, charter=lambda sha256: hostile)
    seed = await open_network(SwarmOptions(host="127.0.0.1"), fresh_identity(tmp_path, "seed"), services, port=0)
    try:
        invite = Invite(charter=digest, seeds=tuple(await seed.addresses()))
        async with asyncio.timeout(SOON):
            with pytest.raises(CharterError, match="malformed"):
                await preview_swarm(invite, "127.0.0.1")
    finally:
        await seed.close()


async def test_a_proxy_that_cannot_be_used_is_no_absence_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(SwarmError, match="proxy cannot be used"):
        await preview_swarm(Invite(charter=bytes(32), gateways=("ws://127.0.0.1:9/gateway",)), "127.0.0.1")
    monkeypatch.delenv("all_proxy")
    result = await preview_swarm(Invite(charter=bytes(32), gateways=("ws://127.0.0.1:9/gateway",)), "127.0.0.1")
    assert result == SwarmPreview(charter=None, answered=False, members=0)
