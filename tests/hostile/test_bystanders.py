"""Strangers who name a third party: nobody calls it unless it agreed, and then not without end."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hostile.conftest import StartAttacker
from network.loopback import SOON, Start, fresh_identity, options
from waggle.network.identity.keys import Identity
from waggle.network.limits import named_calls
from waggle.network.messages import consent
from waggle.network.messages.events import ReachChanged, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.network.transport.hivemind.network import HivemindNetwork, open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter
from waggle_lab.security.attacks import Payload

NAMES = 120
WATCHED_S = 8.0  # a minute in tests/measured/network.py


class Bystander:
    """A member of the swarm that counts who asks it for payloads."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.calls = list[bytes]()

    @asynccontextmanager
    async def present(self, seed_address: str) -> AsyncIterator[HivemindNetwork]:
        network = await open_network(options(), self.identity, Services(payload=self._give), port=0)
        try:
            await network.connect(seed_address)
            await network.find_neighbours()
            yield network
        finally:
            await network.close()

    async def _give(self, peer_id: bytes, _request: bytes) -> bytes:
        self.calls.append(peer_id)
        return b""


@pytest.fixture
def names(tmp_path: Path) -> list[Identity]:
    return [fresh_identity(tmp_path, f"name {number}") for number in range(NAMES)]


@pytest.mark.parametrize("claims", ["nothing", "another's consent"])
async def test_a_bystander_that_made_up_names_name_is_never_called(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, tmp_path: Path, names: list[Identity], claims: str
) -> None:
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile, bystander = await attacker("namer"), Bystander(fresh_identity(tmp_path, "bystander"))
    own = consent.give(hostile.identity, charter.digest, hostile.identity.peer_id, time.time())
    changes = {"via": (bystander.identity.peer_id,), "consents": () if claims == "nothing" else (own,)}
    async with bystander.present(seed_address):
        hostile.offer(Payload(b"nothing", changes=changes))  # in handshakes
        assert await hostile.announce_crowd(names[: NAMES // 2], **changes) == 0, "the swarm stores none"
        hostile.show_crowd(names[NAMES // 2 :], **changes)  # to whoever reads the directory there
        await hostile.network.connect((await victim.node.addresses())[0])
        refused = await victim.ear.hear(RecordRejected, lambda news: news.origin == hostile.identity.peer_id)
        assert refused.reason == Fault.FORGED_ANNOUNCEMENT
        await asyncio.sleep(WATCHED_S)
    assert bystander.calls == []


async def test_a_holder_that_agreed_is_called_for_all_who_name_it_together_no_more_than_its_budget(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, tmp_path: Path, names: list[Identity],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It agreed to every one of these names; the same names without its consent cause no call, as the test above shows."""
    monkeypatch.setattr(named_calls, "CALLS_RATE", 0.5)
    monkeypatch.setattr(named_calls, "CALLS_BURST", 5.0)
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    hostile, bystander = await attacker("namer"), Bystander(fresh_identity(tmp_path, "bystander"))
    began = time.monotonic()
    async with bystander.present(seed_address):
        for name in names:
            agreed = consent.give(bystander.identity, charter.digest, name.peer_id, time.time())
            await hostile.announce_crowd([name], via=(bystander.identity.peer_id,), consents=(agreed,))
        async with asyncio.timeout(SOON):
            while bystander.calls.count(victim.identity.peer_id) < named_calls.CALLS_BURST:
                await asyncio.sleep(0.05)
        await asyncio.sleep(4.0)
        most = named_calls.CALLS_BURST + named_calls.CALLS_RATE * (time.monotonic() - began) + 1
        assert bystander.calls.count(victim.identity.peer_id) <= most
