"""Two nodes on one network find each other without a seed, and nonsense is ignored."""

import asyncio
import secrets
from pathlib import Path
from types import SimpleNamespace

import pytest

from network.loopback import SOON, Live, Start, fresh_identity
from waggle.core.peer_id import text_of
from waggle.network.identity.keys import Identity
from waggle.network.transport.hivemind.lan_discovery import KIND, MAX_OF_HOST, MAX_SUGGESTED, PERIOD_S, LanDiscovery

SWARM = secrets.token_bytes(32)  # its own: the same tests may run beside these, on the same network


async def meet(first: Live, other: Live) -> None:
    """Wait until both nodes have met, even if others are on this network."""
    for live, met in ((first, other), (other, first)):
        await live.ear.peer(met.identity.peer_id, lambda news: news.peer.connection == "lan")


async def test_two_nodes_on_one_network_meet_without_a_seed(start: Start) -> None:
    node = await start("one", lan=True)
    other = await start("other", lan=True)
    await meet(node, other)


async def test_who_takes_a_nodes_name_keeps_it_from_nothing(start: Start, tmp_path: Path) -> None:
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

    name = f"{text_of(fresh_identity(tmp_path, 'one').peer_id)[-24:]}.{KIND}"
    squatter = AsyncZeroconf(interfaces=["127.0.0.1"])
    accepted = AsyncServiceInfo(KIND, name, addresses=[bytes([127, 0, 0, 1])], port=9, server="squatter.local.")

    async def insist() -> None:
        while True:
            await squatter.async_update_service(accepted)
            await asyncio.sleep(0.2)

    await squatter.async_register_service(accepted)  # before the node comes: else the name may be the node's
    insisting = asyncio.create_task(insist())
    try:
        node, other = await start("one", lan=True), await start("other", lan=True)
        await meet(node, other)
        assert not insisting.done()
    finally:
        insisting.cancel()
        await squatter.async_close()


async def test_where_every_name_is_taken_others_are_still_found(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from zeroconf.asyncio import AsyncZeroconf

    async def name_taken(*_arguments: object, **_named: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(AsyncZeroconf, "async_register_service", name_taken)
    monkeypatch.setattr("waggle.network.transport.hivemind.lan_discovery.REGISTER_S", 0.05)
    lan = LanDiscovery(SWARM, identity.peer_id, lambda address: None)
    await lan.advertise([f"/ip4/127.0.0.1/tcp/1/p2p/{text_of(identity.peer_id)}"], "127.0.0.1")
    try:
        assert lan._browser is not None
        assert "claims its name" in caplog.text
        caplog.clear()
    finally:
        await lan.close()


def test_only_addresses_of_the_same_swarm_are_suggested_each_once_and_not_for_ever(identity: Identity, tmp_path: Path) -> None:
    received: list[str] = []
    lan = LanDiscovery(SWARM, identity.peer_id, received.append)
    peer = text_of(fresh_identity(tmp_path, "peer").peer_id)

    def properties(address: str, charter: bytes = SWARM) -> dict[bytes, bytes]:
        return {b"address": address.encode(), b"charter": charter.hex().encode()}

    good = f"/ip4/192.168.1.2/tcp/4001/p2p/{peer}"
    for each in (
        properties(good),
        properties(good),
        properties(good, bytes([1]) * 32),
        properties(f"/ip4/192.168.1.2/tcp/1/p2p/{text_of(identity.peer_id)}"),
        properties("nonsense"),
        properties("/ip4/1.2.3.4/tcp/1/p2p/" + "1" * 300),
        {b"address": b"\xff"},
        {},
    ):
        lan.on_service(each)
    assert received == [good]
    for host in range(3, 3 + 2 * MAX_SUGGESTED):
        lan.on_service(properties(f"/ip4/192.168.1.{host}/tcp/4001/p2p/{peer}"))
    assert len(received) == MAX_SUGGESTED


async def test_what_is_no_name_of_ours_is_not_asked_about(identity: Identity) -> None:
    lan, added = LanDiscovery(SWARM, identity.peer_id, lambda address: None), SimpleNamespace(name="Added")
    for name in ("evil.example.", f"x{KIND}", "", "_waggle._tcp.local."):
        lan._on_change(None, KIND, name, added)  # type: ignore[arg-type]
    assert not lan._asking


async def test_one_device_that_makes_up_addresses_keeps_nobody_else_from_being_found(identity: Identity, tmp_path: Path) -> None:
    received: list[str] = []
    now = 0.0
    lan = LanDiscovery(SWARM, identity.peer_id, received.append, clock=lambda: now)
    peer = text_of(fresh_identity(tmp_path, "peer").peer_id)

    def says(host: int, port: int) -> None:
        lan.on_service({b"address": f"/ip4/10.0.0.{host}/tcp/{port}/p2p/{peer}".encode(), b"charter": SWARM.hex().encode()})

    for port in range(1, 2 * MAX_SUGGESTED):
        says(9, port)
    says(5, 4001)
    assert len(received) == MAX_OF_HOST + 1
    for host in range(10, 10 + MAX_SUGGESTED):
        says(host, 1)
    says(6, 4001)
    assert len(received) == MAX_SUGGESTED
    now = PERIOD_S + 1
    await lan.advertise((), "127.0.0.1")
    for host in range(10, 10 + MAX_SUGGESTED - MAX_OF_HOST - 1):
        says(host, 1)
    assert len(received) == MAX_SUGGESTED
    says(6, 4001)
    assert len(received) == MAX_SUGGESTED + 1, "an hour later there is room again, for others"


async def test_whoever_was_passed_over_is_heard_of_an_hour_later(identity: Identity, tmp_path: Path) -> None:
    result, messages, now = list[str](), asyncio.Queue[bytes](), 0.0

    class Discovery(LanDiscovery):
        def on_service(self, properties: dict[bytes, bytes]) -> None:
            super().on_service(properties)
            messages.put_nowait(properties.get(b"address", b""))

    def at(who: Identity, port: int) -> str:
        return f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(who.peer_id)}"

    other = fresh_identity(tmp_path, "other")
    lan, here = Discovery(SWARM, identity.peer_id, result.append, clock=lambda: now), at(other, 9)
    late = LanDiscovery(SWARM, other.peer_id, lambda address: None)
    try:
        await lan.advertise([at(identity, 1)], "127.0.0.1")
        for port in range(10, 10 + MAX_OF_HOST):
            lan.on_service({b"address": at(other, port).encode(), b"charter": SWARM.hex().encode()})
        async with asyncio.timeout(SOON):
            await late.advertise([here], "127.0.0.1")
            while await messages.get() != here.encode():
                pass
            assert here not in result
            now = PERIOD_S + 1
            await lan.advertise([at(identity, 1)], "127.0.0.1")
            while here not in result:
                await messages.get()
    finally:
        await asyncio.gather(lan.close(), late.close())


async def test_where_a_node_has_come_to_be_others_are_found_anew(identity: Identity, tmp_path: Path) -> None:
    received: list[str] = []
    lan = LanDiscovery(SWARM, identity.peer_id, received.append)
    other = f"/ip4/10.0.0.5/tcp/4001/p2p/{text_of(fresh_identity(tmp_path, 'other').peer_id)}"
    try:
        for port in (1, 2):
            await lan.advertise([f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(identity.peer_id)}"], "127.0.0.1")
            lan.on_service({b"address": other.encode(), b"charter": SWARM.hex().encode()})
    finally:
        await lan.close()
    assert received == [other, other]


@pytest.mark.parametrize("addresses", [(), ("/ip4/1.2.3.4/udp/1/quic-v1/p2p/x",)])
async def test_a_node_that_has_nothing_to_tell_says_nothing(identity: Identity, addresses: tuple[str, ...]) -> None:
    lan = LanDiscovery(SWARM, identity.peer_id, lambda address: None)
    await lan.advertise(addresses, "127.0.0.1")
    assert lan._zeroconf is None
    await lan.close()
    await lan.close()


async def test_a_node_before_its_network_tells_of_no_address_of_its_own_only(identity: Identity) -> None:
    lan = LanDiscovery(SWARM, identity.peer_id, lambda address: None)
    await lan.advertise([f"/ip4/127.0.0.1/tcp/1/p2p/{text_of(identity.peer_id)}"], "0.0.0.0")
    assert lan._zeroconf is None
    await lan.close()


async def test_where_a_node_has_come_to_be_is_told_anew(identity: Identity, tmp_path: Path) -> None:
    received: asyncio.Queue[str] = asyncio.Queue()
    other = fresh_identity(tmp_path, "other")
    lan, listening = (
        LanDiscovery(SWARM, identity.peer_id, lambda address: None),
        LanDiscovery(SWARM, other.peer_id, received.put_nowait),
    )
    try:
        await listening.advertise([f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(other.peer_id)}"], "127.0.0.1")
        for port in (1, 1, 2):
            address = f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(identity.peer_id)}"
            before = lan._zeroconf
            await lan.advertise([address], "127.0.0.1")
            if before is None or before is not lan._zeroconf:
                assert await asyncio.wait_for(received.get(), SOON) == address
    finally:
        await asyncio.gather(lan.close(), listening.close())
    assert received.empty()
