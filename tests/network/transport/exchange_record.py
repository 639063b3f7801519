"""Run in a copy of the product with another transport: two nodes exchange a record through it, and a third gets the charter."""

import asyncio
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from network.loopback import Ear, answered, fresh_identity, options, question_ids, share
from waggle.network.messages.events import GroupsArrived
from waggle.network.open_node import open_node
from waggle.network.transport.choice import fetch_charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm


async def exchange(transport: str, folder: Path, verifier: Verifier) -> int:
    """Share groups at one node; how many of them arrive at the other."""
    charter, ear, chosen = first_swarm(), Ear(), options(transport=transport)
    sender, receiver = fresh_identity(folder, "sender"), fresh_identity(folder, "receiver")
    sending = open_node(chosen, charter, sender, verifier, Ear())
    receiving = open_node(chosen, charter, receiver, verifier, ear)
    try:
        await sending.start()
        await receiving.start()
        assert await fetch_charter(chosen, fresh_identity(folder, "visitor"), charter.digest) == charter
        share(sending, answered(charter, verifier, sender.peer_id, question_ids(charter, verifier, sender.peer_id, 3)))
        return len((await ear.hear(GroupsArrived)).groups)
    finally:
        await sending.close()
        await receiving.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, closing(Verifier(first_swarm())) as verifier:
        received = asyncio.run(exchange(sys.argv[1], Path(folder), verifier))
        sys.stdout.write(f"received {received} groups\n")
