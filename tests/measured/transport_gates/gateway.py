"""A seed with a gateway, or a light client of it. `gateway.py seed|light ADDRESS FOLDER`"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from waggle.network import seed
from waggle.network.identity import keys
from waggle.network.identity.membership import Membership
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.network.transport.interface import Callbacks, PeerAway, Services
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

WAIT_S = 45.0


async def serve(host: str, folder: Path) -> None:
    options = SwarmOptions(host=host, port=4001, gateway=True, web_host=host, web_port=8080)

    def say(line: str) -> None:
        if line.startswith("Status page"):
            print(f"ws://{host}:8080/gateway", flush=True)

    charter = first_swarm()
    await seed.run_with_page(options, keys.load_or_create(folder / "own.key"), charter, Verifier(charter), say, asyncio.Event())


async def join(gateway: str, folder: Path) -> None:
    identity, charter, joined = keys.load_or_create(folder / "own.key"), first_swarm(), asyncio.Event()
    services, membership = Services(digest=charter.digest), Membership(charter, identity.peer_id)
    callbacks = Callbacks(services=services, report=print, membership=membership, on_joined=joined.set)
    transport, started = GatewayTransport(SwarmOptions(gateways=(gateway,), light=True), identity, callbacks), time.monotonic()
    await transport.start()
    running = asyncio.create_task(transport.run())
    try:
        await asyncio.wait_for(joined.wait(), WAIT_S)
        await transport.network.read_directory(f"waggle/1/{charter.digest.hex()}/0/0")
        result = {"joined": True, "seconds": round(time.monotonic() - started, 2)}
    except (TimeoutError, PeerAway) as error:
        result = {"joined": joined.is_set(), "error": repr(error)}
    print(json.dumps(result), flush=True)
    running.cancel()
    os._exit(0)


if __name__ == "__main__":
    role, address, place = sys.argv[1:]
    Path(place).mkdir(parents=True, exist_ok=True)
    asyncio.run((serve if role == "seed" else join)(address, Path(place)))
