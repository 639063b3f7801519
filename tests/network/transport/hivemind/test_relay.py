"""What nodes relay for strangers, read from their grants: a seed as much as its options say, other nodes nothing."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from network.loopback import SOON, fresh_identity, options
from waggle.network.transport.hivemind import relay as relaying
from waggle.network.transport.hivemind.network import HivemindNetwork, load_hivemind, open_network
from waggle.network.transport.hivemind.relay import HOP, RELAYED, RESERVE
from waggle.network.transport.interface import Services

LITTLE = 100_000
LIMIT, DATA = 4, 2  # where an answer says how many bytes one circuit may carry each way
Open = Callable[..., Awaitable[HivemindNetwork]]


@pytest.fixture
async def stranger() -> AsyncIterator[Any]:
    p2p = await load_hivemind().P2P.create(host_maddrs=["/ip4/127.0.0.1/tcp/0"], dht_mode="client", nat_port_map=False)
    yield p2p
    await p2p.shutdown()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Open]:
    """Open another node, which is closed at the end of the test."""
    numbers = itertools.count()
    async with AsyncExitStack() as stack:

        async def opens(*, relay: bool) -> HivemindNetwork:
            identity = fresh_identity(tmp_path, str(next(numbers)))
            dht = await open_network(options(relay=relay), identity, Services(), port=0)
            stack.push_async_callback(dht.close)
            return dht

        yield opens


async def reserve(stranger: Any, dht: HivemindNetwork) -> bytes:
    """A node's answer to a reservation, without its length prefix."""
    hivemind = load_hivemind()
    transport = (await dht.addresses())[0].rsplit("/p2p/", 1)[0]
    await stranger._client.connect(dht.daemon.p2p.peer_id, [hivemind.Multiaddr(transport)])
    async with asyncio.timeout(SOON):
        _, reader, writer = await stranger.call_binary_stream_handler(dht.daemon.p2p.peer_id, HOP)
        writer.write(RESERVE)
        answer = await reader.read()
        writer.close()
    return bytes(answer)


async def granted(stranger: Any, dht: HivemindNetwork) -> int:
    """Bytes that one relayed connection through this node may carry in each direction."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    def fields(message: bytes) -> dict[int, Any]:
        return {field.field_number: field.data for field in UnknownFieldSet(Empty.FromString(message))}

    answer = await reserve(stranger, dht)
    _length, message = (answer[:1], answer[1:]) if answer[0] < 128 else (answer[:2], answer[2:])
    return int(fields(fields(message)[LIMIT])[DATA])


@pytest.fixture
def weaken_relays(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Make the first starts of p2pd relay little, as if the wrong one of its two relays had come last. Returns their options."""

    def wrongly(starts: int) -> list[int]:
        limits: list[int] = []

        def arguments(relay: bool) -> dict[str, Any]:
            limits.append(LITTLE if len(limits) < starts else RELAYED)
            return {**rightly(relay), "relayDataLimit": limits[-1]}

        rightly = relaying.arguments
        monkeypatch.setattr(relaying, "arguments", arguments)
        return limits

    return wrongly


async def test_each_seed_relays_as_much_as_it_was_told_to(node: Open, stranger: Any) -> None:
    assert [await granted(stranger, await node(relay=True)) for _ in range(3)] == [RELAYED] * 3


async def test_a_seed_that_would_relay_too_little_is_started_again(
    node: Open, stranger: Any, weaken_relays: Callable[[int], list[int]]
) -> None:
    starts = weaken_relays(2)
    assert await granted(stranger, await node(relay=True)) == RELAYED
    assert starts[:2] == [LITTLE] * 2


async def test_a_seed_that_always_relays_too_little_is_there_all_the_same(
    node: Open,
    stranger: Any,
    weaken_relays: Callable[[int], list[int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(relaying, "STARTS", 2)
    starts = weaken_relays(1000)
    await (await node(relay=True)).addresses()
    assert len(starts) == 3
    assert "relays too little" in caplog.text
    caplog.clear()


async def test_a_node_that_is_no_seed_relays_for_nobody(node: Open, stranger: Any) -> None:
    with pytest.raises(load_hivemind().P2PDaemonError, match="protocol"):
        await granted(stranger, await node(relay=False))


async def test_a_peer_behind_a_router_is_called_through_a_seed_by_its_address(node: Open) -> None:
    seed, home, caller = await node(relay=True), await node(relay=False), await node(relay=False)
    await reserve(home.daemon.p2p, seed)
    assert (await caller.connect(f"{(await seed.addresses())[0]}/p2p-circuit/p2p/{home.daemon.p2p.peer_id}")).delay_ms > 0
    assert {peer.peer_id for peer in await caller.daemon.peers()} == {each.daemon.p2p.peer_id.to_bytes() for each in (seed, home)}
