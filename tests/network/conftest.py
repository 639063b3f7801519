"""One charter for all tests of the network, and nodes that are always closed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from end_to_end.programs import SLOW
from network.loopback import Ear, Live, Start, fresh_identity, options, serving
from waggle.network.exchange import publisher, verification
from waggle.network.identity.keys import Identity
from waggle.network.messages import announcement
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.network.transport.gateway import charter_download, server
from waggle.network.transport.gateway import network as gateways
from waggle.network.transport.gateway import transport as light
from waggle.network.transport.hivemind import daemon, reachability
from waggle.network.transport.hivemind import network as dht
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relax timeouts, because other tests slow the computer: late answers must not count as absent peers or as slow records."""
    for module, name in (
        (dht, "CALL_S"), (dht, "CONNECT_S"), (daemon, "CONNECT_S"), (dht, "PING_S"), (reachability, "PATIENCE_S"),
        (verification, "RECORD_S"), (verifying, "STRANGERS_SECONDS"), (server, "PATIENCE_S"), (gateways, "CALL_S"),
        (light, "CALL_S"), (charter_download, "CALL_S"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, SLOW * getattr(module, name))
    monkeypatch.setattr(publisher, "RENEW_S", announcement.RENEW_S / SLOW)


@pytest.fixture(scope="session")
def charter() -> Charter:
    return first_swarm()


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return fresh_identity(tmp_path, "own")


@pytest.fixture
async def start(tmp_path: Path, charter: Charter, verifier: Verifier) -> AsyncIterator[Start]:
    """Start a node: `await start("name", seeds=(...))`."""
    nodes: list[SwarmNode] = []

    async def start_one(name: str, *, clock: Callable[[], float] = time.time, **changes: object) -> Live:
        ear, identity = Ear(), fresh_identity(tmp_path, name)
        node = open_node(options(**changes), charter, identity, verifier, ear, clock)
        nodes.append(node)
        await node.start()
        return Live(node, identity, ear)

    yield start_one
    await asyncio.gather(*(node.close() for node in nodes))


@pytest.fixture
async def seed_address(tmp_path: Path, charter: Charter) -> AsyncIterator[str]:
    """The address of a running seed."""
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        yield address
