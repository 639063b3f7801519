#!/usr/bin/env python3
"""Measure the time from the start of a node until it has judged a peer's first group, on loopback and through a gateway.

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
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

TEMPO_S = 1.0  # the default


async def measure(folder: Path) -> dict[str, float]:
    charter = first_swarm()
    verifier = Verifier(charter)
    verifier.check_charter()  # as a node does before it joins
    identity, figures = fresh_identity(folder, "own"), {}
    async with serving(fresh_identity(folder, "seed"), charter) as seed:
        sharing_node = open_node(
            options(seeds=(seed,), web_port=0, gateway=True, tempo=TEMPO_S), charter, identity, verifier, lambda news: None
        )
        try:
            await sharing_node.start()
            share(
                sharing_node, answered(charter, verifier, identity.peer_id, question_ids(charter, verifier, identity.peer_id, 1))
            )
            gateway = (f"ws://127.0.0.1:{sharing_node.web.port}/gateway",)
            for name, entry_points in (("join_s", {"seeds": (seed,)}), ("join_gateway_s", {"gateways": gateway, "light": True})):
                arrivals, began = Ear(), time.monotonic()
                node = open_node(
                    options(tempo=TEMPO_S, **entry_points), charter, fresh_identity(folder, name), verifier, arrivals
                )
                try:
                    await node.start()
                    await arrivals.hear(GroupsArrived)
                    figures[name] = round(time.monotonic() - began, 2)
                finally:
                    await node.close()
        finally:
            await sharing_node.close()
            verifier.close()
    return figures


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(json.dumps(asyncio.run(measure(Path(scratch)))) + "\n")
