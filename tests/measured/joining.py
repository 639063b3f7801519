#!/usr/bin/env python3
"""How long a node takes from its start until it has judged the first group of a peer: on loopback, and through a gateway.

PYTHONPATH=app:tests python tests/measured/joining.py
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from network.loopback import Ear, answered, fresh_identity, options, question_ids, serving, share
from waggle.network.messages.events import GroupsArrived
from waggle.network.open_node import open_node
from waggle.tasks.charter import first_swarm
from waggle.tasks.sandbox.verifier import Verifier

TEMPO_S = 1.0  # as it is by default


async def measure(folder: Path) -> dict[str, float]:
    charter = first_swarm()
    verifier = Verifier(charter)
    verifier.check_charter()  # what a node does before it joins
    own, found = fresh_identity(folder, "own"), {}
    async with serving(fresh_identity(folder, "seed"), charter) as seed:
        giver = open_node(
            options(seeds=(seed,), web_port=0, gateway=True, tempo=TEMPO_S), charter, own, verifier, lambda news: None
        )
        try:
            await giver.start()
            share(giver, answered(charter, verifier, own.peer_id, question_ids(charter, verifier, own.peer_id, 1)))
            gateway = (f"ws://127.0.0.1:{giver.web_port}/gateway",)
            for name, ways in (("join_s", {"seeds": (seed,)}), ("join_gateway_s", {"gateways": gateway, "light": True})):
                ear, begun = Ear(), time.monotonic()
                node = open_node(options(tempo=TEMPO_S, **ways), charter, fresh_identity(folder, name), verifier, ear)
                try:
                    await node.start()
                    await ear.hear(GroupsArrived)
                    found[name] = round(time.monotonic() - begun, 2)
                finally:
                    await node.close()
        finally:
            await giver.close()
            verifier.close()
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(json.dumps(asyncio.run(measure(Path(scratch)))) + "\n")
