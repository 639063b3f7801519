"""A stranger in a process of its own, for network.py: makes one attack on the node at an address, and prints what it did.

python3 tests/measured/network_stranger.py ATTACK ADDRESS SECONDS
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from waggle.network.identity import keys
from waggle.network.messages.addresses import peer_of
from waggle.network.messages.options import SwarmOptions
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security.attacker import Attacker


async def declare(attacker: Attacker, address: str, seconds: float) -> int:
    """The number of streams that it opened, each of which declares 4 MiB and is silent then."""
    return await attacker.declare_calls(peer_of(address), seconds)


ATTACKS: dict[str, Callable[[Attacker, str, float], Awaitable[int]]] = {"declare": declare}


async def main(name: str, address: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        attacker = Attacker(keys.load_or_create(Path(folder) / "stranger.key"), first_swarm())
        await attacker.start(SwarmOptions(host="127.0.0.1", seeds=(address,)))
        try:
            sys.stdout.write(f"{await ATTACKS[name](attacker, address, seconds)}\n")
        finally:
            await attacker.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
