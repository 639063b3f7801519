"""Through a gateway a computer takes part that can call nobody; a gateway that lies is found out by signatures and hashes."""

import contextlib
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from swarm.live import Ear, Start, answered, fresh_identity, options, question_ids, share
from waggle import paths
from waggle.engine import others
from waggle.errors import CharterError, SwarmError
from waggle.settings import Settings, Swarm
from waggle.swarm import announcement as announcements
from waggle.swarm import gateway, light
from waggle.swarm.admission import Admission
from waggle.swarm.announcement import Announcement
from waggle.swarm.dht import PeerAway
from waggle.swarm.identity import Identity
from waggle.swarm.light import Gates, LightConnection
from waggle.swarm.news import GatewayDoubted, GroupsArrived, ReachFound
from waggle.swarm.node import SwarmNode
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.verifier import Verifier


async def test_groups_travel_both_ways_through_a_gateway(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, tmp_path: Path
) -> None:
    lender = await start("lender", seeds=(seed_address,), web_port=0, gateway=True)
    full = await start("full", seeds=(seed_address,))
    address = f"ws://127.0.0.1:{lender.node.web_port}/gateway"
    ear, own = Ear(), fresh_identity(tmp_path, "light")
    node = SwarmNode(options(gateways=(address,), light=True), charter, own, verifier, ear)
    try:
        await node.start()
        found = await ear.hear(ReachFound, lambda news: news.reach == "connected")
        assert found.way == "gateway"
        with pytest.raises(PeerAway):  # it has no network process
            _ = node.pid

        mine = answered(charter, verifier, own.peer_id, question_ids(charter, verifier, own.peer_id, 1))
        theirs = answered(charter, verifier, full.identity.peer_id, question_ids(charter, verifier, full.identity.peer_id, 1))
        share(node, mine)
        share(full.node, theirs)

        arrived = await full.ear.hear(GroupsArrived, lambda news: news.origin == own.peer_id)
        assert [each.group for each in arrived.groups] == mine
        arrived = await ear.hear(GroupsArrived, lambda news: news.origin == full.identity.peer_id)
        assert [each.group for each in arrived.groups] == theirs
        await lender.ear.hear(GroupsArrived, lambda news: news.origin == own.peer_id)

        home = paths.Home(tmp_path / "home").prepare()
        chosen = Settings(swarm=Swarm(charter=charter.digest.hex(), gateways=(address,), light=True))
        assert await others.charter_of(home, chosen) == charter
        with pytest.raises(CharterError):
            await light.fetch_charter(options(gateways=(address,)), bytes(32))
    finally:
        await node.close()


async def test_a_gateway_lets_in_only_whoever_signs_with_its_own_key(start: Start, charter: Charter, tmp_path: Path) -> None:
    lender = await start("lender", web_port=0, gateway=True)
    address = f"ws://127.0.0.1:{lender.node.web_port}/gateway"
    own, other = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "other")

    async def first_word(make: object) -> bytes:
        async with connect(address) as connection:
            welcome = msgspec.msgpack.decode(await connection.recv(), type=gateway.Welcome)
            assert (welcome.charter, welcome.peer_id) == (charter.digest, lender.identity.peer_id)
            await connection.send(make(welcome))  # type: ignore[operator]
            return bytes(await connection.recv())  # type: ignore[arg-type]

    def hello(welcome: gateway.Welcome, *, signer: Identity, to: bytes) -> bytes:
        return msgspec.msgpack.encode(gateway.Hello(own.peer_id, b"", signer.sign(gateway.DOMAIN, to + welcome.nonce)))

    assert await first_word(lambda welcome: hello(welcome, signer=own, to=welcome.peer_id)) == gateway.DONE
    wrong = (
        lambda welcome: hello(welcome, signer=other, to=welcome.peer_id),
        lambda welcome: hello(welcome, signer=own, to=other.peer_id),  # passed on by another gateway
        lambda welcome: b"",
        lambda welcome: b"\xc1",
        lambda welcome: b"\x91" * 1000,
    )
    for make in wrong:
        with pytest.raises(ConnectionClosed):
            await first_word(make)
    wrongly = options(gateways=("http://example.org",))
    node = LightConnection(wrongly, own, charter.digest, Admission(charter, own.peer_id), Ear(), lambda: None)
    with pytest.raises(SwarmError, match="no gateway's address"):
        await node.start()


def announced(swarm: Charter, **changes: object) -> Announcement:
    now = time.time()
    fields: dict[str, object] = {
        "charter": swarm.digest, "sha256": bytes(32), "size": 9, "round": 1, "epoch": epoch_at(now), "specialties": 1,
        "model": "m", "expires": int((now + 200) * 1000), **changes,
    }  # fmt: skip
    return Announcement(**fields)  # type: ignore[arg-type]


async def test_what_a_lying_gateway_makes_up_is_not_believed(identity: Identity, charter: Charter, tmp_path: Path) -> None:
    origin = fresh_identity(tmp_path, "origin")
    true = announcements.signed(announced(charter), origin)
    lies = (
        gateway.Listed(origin.peer_id, true),
        gateway.Listed(fresh_identity(tmp_path, "victim").peer_id, true),
        gateway.Listed(identity.peer_id, announcements.signed(announced(charter, charter=bytes(32)), identity)),
        gateway.Listed(identity.peer_id, announcements.signed(announced(charter, expires=1), identity)),
        gateway.Listed(identity.peer_id, b"x"),
    )

    async def lie(connection: ServerConnection) -> None:
        await connection.send(msgspec.msgpack.encode(gateway.Welcome(1, origin.peer_id, charter.digest, bytes(32))))
        await connection.recv()
        await connection.send(gateway.DONE)
        with contextlib.suppress(ConnectionClosed):
            async for message in connection:
                ask = msgspec.msgpack.decode(message, type=gateway.Ask)
                listed = lies if isinstance(ask, gateway.Directory) else ()
                await connection.send(msgspec.msgpack.encode(gateway.Answer(ask.id, b"made up", listed)))

    ear = Ear()
    async with serve(lie, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        node = LightConnection(
            options(gateways=(address,)), identity, charter.digest, Admission(charter, identity.peer_id), ear, lambda: None
        )
        try:
            await node.start()
            await ear.hear(ReachFound, lambda news: news.reach == "connected")
            assert await node.dht.read("") == {origin.peer_id: true}
            assert await node.dht.pull(origin.peer_id, bytes(32), 1.0) == b""
            assert await node.dht.pull(origin.peer_id, hashlib.sha256(b"made up").digest(), 1.0) == b"made up"
            with pytest.raises(PeerAway):
                await node.dht.lodge(bytes(32), b"mine")
        finally:
            await node.close()


def test_a_gateway_that_goes_on_hiding_members_is_told_of_once(identity: Identity, charter: Charter) -> None:
    ear = Ear()
    gates = Gates(identity, charter.digest, Admission(charter, identity.peer_id), ear)
    many = {bytes([i]): b"" for i in range(10)}
    for _ in range(light.HIDES - 1):
        gates._compare({"one": many, "two": {}})
    gates._compare({"one": many, "two": many})  # it was only late
    assert ear.heard == []
    for _ in range(light.HIDES + 2):
        gates._compare({"one": many, "two": {b"\0": b""}})
    assert ear.heard == [GatewayDoubted(address="two", shown=1, known=10)]


WITHOUT_HIVEMIND = """
import importlib, pkgutil, sys
sys.modules["hivemind"] = None  # to import it fails, and nobody finds it: as on Windows
import waggle
for found in pkgutil.walk_packages(waggle.__path__, "waggle."):
    if not found.name.startswith(("waggle.gui", "waggle.lab", "waggle.policy.mlx", "waggle.__main__", "waggle.tasks.v")):
        importlib.import_module(found.name)
from waggle.swarm.light import is_light
from waggle.swarm.options import SwarmOptions
assert is_light(SwarmOptions(gateways=("wss://example.org/gateway",)))
assert not is_light(SwarmOptions())
"""


def test_all_but_the_network_process_works_where_hivemind_is_not_installed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_HIVEMIND], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr


def environment() -> dict[str, str]:
    from end_to_end.programs import ENVIRONMENT

    return ENVIRONMENT
