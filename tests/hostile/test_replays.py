"""A peer repeats older announcements of another: to a live node over hivemind they never replace newer ones."""

import asyncio
import importlib

from hostile.conftest import StartAttacker, honest_one
from network.loopback import SOON, Start, answered, question_ids, share
from waggle.network.messages import announcement as announcements
from waggle.network.messages import directory
from waggle.network.messages.events import GroupsArrived, ReachChanged
from waggle.network.transport.hivemind.network import HivemindNetwork
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacker import Attacker

LONGER_S = 400.0  # seconds past the signed end, within the tolerance of a reader for fast clocks


async def test_an_older_announcement_of_a_peer_takes_nowhere_the_place_of_its_newer_one(
    start: Start, seed_address: str, attacker: StartAttacker, charter: Charter, verifier: Verifier
) -> None:
    key = directory.key_of(charter.digest, 0, 0)
    victim = await start("victim", seeds=(seed_address,))
    await victim.ear.hear(ReachChanged, lambda news: news.reach == "connected")
    thief = await attacker("thief")
    honest = await honest_one(start, seed_address, charter, verifier, victim)
    origin = honest.identity.peer_id
    old = await _announced(thief.network, key, origin, 1)

    ids = question_ids(charter, verifier, origin, 2)[1:]
    share(honest.node, answered(charter, verifier, origin, ids), round_number=2)
    await victim.ear.hear(GroupsArrived, lambda news: news.origin == origin and news.round == 2)
    new = await _announced(thief.network, key, origin, 2)
    expires_at = announcements.parse(old).expires_at
    assert expires_at < announcements.parse(new).expires_at < expires_at + LONGER_S
    for until in (expires_at, expires_at + LONGER_S):
        await thief.network.announce(key, origin, old, until)
    _lie(thief, key, origin, old, expires_at + LONGER_S)

    entries = await victim.node.transport.network.read_directory(key)
    assert announcements.parse(entries[origin]).round == 2
    late = await start("late", seeds=((await thief.network.addresses())[0], seed_address))
    arrived = await late.ear.hear(GroupsArrived, lambda news: news.origin == origin)
    assert arrived.round == 2


async def _announced(dht: HivemindNetwork, key: str, origin: bytes, round_number: int) -> bytes:
    """The announcement of a peer for a round, once it is in the directory."""
    async with asyncio.timeout(SOON):
        while True:
            blob = (await dht.read_directory(key)).get(origin, b"")
            if blob and announcements.parse(blob).round == round_number:
                return blob
            await asyncio.sleep(0.05)


def _lie(thief: Attacker, key: str, origin: bytes, old: bytes, expires_at: float) -> None:
    """Let a hostile node answer searches for this key with an old announcement."""
    protocol = thief.network._node.protocol
    protocol.storage = importlib.import_module("hivemind.dht.storage").DHTLocalStorage()
    packed = protocol.serializer.dumps(old)
    assert protocol.storage.store(load_hivemind().DHTID.generate(key), packed, expires_at, subkey=origin)
