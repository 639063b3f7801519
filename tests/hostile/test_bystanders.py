"""Strangers who name a third party: nobody calls it unless it agreed, and then not without end."""

import asyncio
import time
from pathlib import Path

import pytest

from hostile.conftest import StartAttacker
from network.loopback import SOON, Start, fresh_identity
from waggle.network.identity.keys import Identity
from waggle.network.limits import named_calls
from waggle.network.messages import consent
from waggle.network.messages.events import ReachChanged, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.tasks.charter import Charter
from waggle_lab.security.attacks import Payload
from waggle_lab.security.bystander import Bystander
from waggle_lab.security.false_directory import show_crowd

NAMES = 120
WATCHED_S = 8.0  # a minute in tests/measured/network.py


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
        show_crowd(hostile.network, charter.digest, names[NAMES // 2 :], changes)  # to whoever reads the directory there
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
