"""Two nodes on one network find each other without any seed; what nobody could mean is passed over."""

from pathlib import Path

import pytest

from swarm.live import Start, fresh_identity
from waggle.swarm.identity import Identity, text_of
from waggle.swarm.lan import MAX_FOUND, Lan
from waggle.swarm.news import ReachFound


async def test_two_nodes_on_one_network_meet_without_a_seed(start: Start) -> None:
    one = await start("one", lan=True)
    other = await start("other", lan=True)
    for live in (one, other):
        await live.ear.hear(ReachFound, lambda news: news.reach == "connected" and news.peers == 1)


def test_only_addresses_of_the_same_swarm_are_suggested_each_once_and_not_for_ever(identity: Identity, tmp_path: Path) -> None:
    heard: list[str] = []
    lan = Lan(bytes(32), identity.peer_id, heard.append)
    peer = text_of(fresh_identity(tmp_path, "peer").peer_id)

    def said(address: str, charter: bytes = bytes(32)) -> dict[bytes, bytes]:
        return {b"address": address.encode(), b"charter": charter.hex().encode()}

    good = f"/ip4/192.168.1.2/tcp/4001/p2p/{peer}"
    for each in (
        said(good), said(good), said(good, bytes([1]) * 32), said(f"/ip4/192.168.1.2/tcp/1/p2p/{text_of(identity.peer_id)}"),
        said("nonsense"), said("/ip4/1.2.3.4/tcp/1/p2p/" + "1" * 300), {b"address": b"\xff"}, {},
    ):  # fmt: skip
        lan.hear(each)
    assert heard == [good]
    for port in range(1, 2 * MAX_FOUND):
        lan.hear(said(f"/ip4/192.168.1.2/tcp/{port}/p2p/{peer}"))
    assert len(heard) == MAX_FOUND


@pytest.mark.parametrize("addresses", [(), ("/ip4/1.2.3.4/udp/1/quic-v1/p2p/x",)])
async def test_a_node_that_has_nothing_to_tell_says_nothing(identity: Identity, addresses: tuple[str, ...]) -> None:
    lan = Lan(bytes(32), identity.peer_id, lambda address: None)
    await lan.start(addresses, "127.0.0.1")
    await lan.close()
    await lan.close()
