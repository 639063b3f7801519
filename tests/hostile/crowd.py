"""A crowd in one address range: hostile nodes with many names, one honest node elsewhere, and the groups that a victim keeps.

Runs in its own network namespace, where the loopback device can have public addresses; prints one JSON line.
"""

import asyncio
import collections
import json
import sys
import tempfile
import time
from pathlib import Path

from network.loopback import Ear, answered, fresh_identity, options, question_ids, share
from waggle.network.messages.events import GroupsArrived
from waggle.network.open_node import open_node
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security import attacks
from waggle_lab.security.attacker import Attacker
from waggle_lab.security.attacks import Scene

RANGE = "8.8.4"  # of the crowd
VICTIM, HONEST = "9.9.9.9", "1.1.1.1"
CROWD = 4
ADDRESSES = (VICTIM, HONEST, *(f"{RANGE}.{i + 1}" for i in range(CROWD)))


async def besiege(folder: Path) -> dict[str, object]:
    """How many groups the victim's pool keeps from each address range, and from the honest node.

    The victim calls all others: a computer that calls one of its own addresses shows that address as its own.
    """
    charter, verifier = first_swarm(), Verifier(first_swarm())
    me, friend = fresh_identity(folder, "victim"), fresh_identity(folder, "honest")
    honest = open_node(options(host=HONEST), charter, friend, verifier, Ear())
    await honest.start()
    crowd = [Attacker(fresh_identity(folder, f"crowd {i}"), charter) for i in range(CROWD)]
    for i, each in enumerate(crowd):
        await each.start(options(host=f"{RANGE}.{i + 1}"))
    addresses = [*await honest.addresses(), *[address for each in crowd for address in await each.network.addresses()]]
    ear = Ear()
    victim = open_node(options(host=VICTIM, seeds=tuple(addresses)), charter, me, verifier, ear)
    await victim.start()
    share(honest, answered(charter, verifier, friend.peer_id, question_ids(charter, verifier, friend.peer_id, 20)))
    await ear.hear(GroupsArrived, lambda news: news.origin == friend.peer_id)
    for each in crowd:
        await each.attack(
            attacks.flood, Scene(charter=charter, verifier=verifier, identity=each.identity, now=time.time(), canary="")
        )
        await ear.hear(GroupsArrived, lambda news, each=each: news.origin == each.identity.peer_id)
    waiting = victim.waiting()
    await asyncio.gather(*(each.close() for each in (*crowd, honest, victim)))
    verifier.close()
    waiting_by_source = collections.Counter(group.source for group in waiting)
    return {"kept": waiting_by_source, "honest": sum(group.group.origin == friend.peer_id for group in waiting)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(asyncio.run(besiege(Path(folder)))) + "\n")
